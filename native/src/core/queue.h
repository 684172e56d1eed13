// Lock-free queues between threads.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace media {

/** A queue of closures from many producers to one consumer, for the commands to a thread. Commands are rare. */
class CommandQueue {
 public:
  CommandQueue() = default;
  CommandQueue(const CommandQueue&) = delete;
  CommandQueue& operator=(const CommandQueue&) = delete;
  ~CommandQueue() { run_all(false); }

  /** Appends a closure. True when the queue was empty; the caller must then wake the consumer. */
  bool push(std::function<void()> run) {
    auto* node = new Node{std::move(run), nullptr};
    Node* head = head_.load(std::memory_order_relaxed);
    do node->next = head;
    while (!head_.compare_exchange_weak(head, node, std::memory_order_acq_rel, std::memory_order_relaxed));
    return head == nullptr;
  }

  bool empty() const { return head_.load(std::memory_order_acquire) == nullptr; }

  void run_all(bool run = true) {
    Node* node = head_.exchange(nullptr, std::memory_order_acq_rel);
    Node* in_order = nullptr;
    while (node) {
      Node* next = node->next;
      node->next = in_order;
      in_order = node;
      node = next;
    }
    while (in_order) {
      std::unique_ptr<Node> mine(in_order);
      in_order = in_order->next;
      if (run) mine->run();
    }
  }

 private:
  struct Node {
    std::function<void()> run;
    Node* next;
  };
  std::atomic<Node*> head_{nullptr};
};

/** A bounded queue from many producers to one consumer: a ring of cells with sequence numbers. */
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) {
    size_t size = 2;
    while (size < capacity) size *= 2;
    cells_ = std::vector<Cell>(size);
    mask_ = size - 1;
    for (size_t i = 0; i < size; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }

  /** Appends an item. False when the queue is full; the caller then keeps the item. */
  bool push(T&& item) {
    size_t at = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[at & mask_];
      const size_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == at) {
        if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
          cell.item = std::move(item);
          cell.turn.store(at + 1, std::memory_order_release);
          return true;
        }
      } else if (turn < at) {
        return false;
      } else {
        at = tail_.load(std::memory_order_relaxed);
      }
    }
  }

  bool pop(T& out) {
    Cell& cell = cells_[head_ & mask_];
    if (cell.turn.load(std::memory_order_acquire) != head_ + 1) return false;
    out = std::move(cell.item);
    cell.turn.store(head_ + mask_ + 1, std::memory_order_release);
    ++head_;
    return true;
  }

 private:
  struct Cell {
    std::atomic<size_t> turn{0};
    T item{};
    Cell() = default;
    Cell(Cell&& o) noexcept : item(std::move(o.item)) {}
  };
  std::vector<Cell> cells_;
  size_t mask_ = 0;
  alignas(64) std::atomic<size_t> tail_{0};
  alignas(64) size_t head_ = 0;
};

}  // namespace media
