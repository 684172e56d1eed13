// Queues between threads: none of them takes a lock.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace media {

/** Many producers, one consumer; each item is a closure. For commands to a thread, which are rare. */
class CommandQueue {
 public:
  CommandQueue() = default;
  CommandQueue(const CommandQueue&) = delete;
  CommandQueue& operator=(const CommandQueue&) = delete;
  ~CommandQueue() { run_all(false); }

  /** True when the queue was empty, so that the consumer has to be woken. */
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

/** Bounded queue of many producers and one consumer (a ring of cells with sequence numbers). */
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

  /** False when full: the item stays with the caller. */
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

/** Bytes from one thread to another, in records; nothing is allocated after construction. */
class ByteRing {
 public:
  explicit ByteRing(size_t capacity) {
    size_t size = 1024;
    while (size < capacity) size *= 2;
    bytes_.resize(size);
  }

  /** Appends a record made of two parts; false when there is no room. */
  bool push(const void* head, size_t head_size, const void* body, size_t body_size) {
    const size_t need = 4 + head_size + body_size;
    const size_t write = write_.load(std::memory_order_relaxed);
    if (need > bytes_.size() - (write - read_.load(std::memory_order_acquire))) return false;
    const auto size = static_cast<uint32_t>(head_size + body_size);
    put(write, &size, 4);
    put(write + 4, head, head_size);
    put(write + 4 + head_size, body, body_size);
    write_.store(write + need, std::memory_order_release);
    return true;
  }

  /** Takes the next record into `out`; false when there is none. */
  bool pop(std::vector<uint8_t>& out) {
    const size_t read = read_.load(std::memory_order_relaxed);
    if (read == write_.load(std::memory_order_acquire)) return false;
    uint32_t size = 0;
    get(read, &size, 4);
    out.resize(size);
    get(read + 4, out.data(), size);
    read_.store(read + 4 + size, std::memory_order_release);
    return true;
  }

  size_t used() const { return write_.load(std::memory_order_acquire) - read_.load(std::memory_order_acquire); }

 private:
  void put(size_t at, const void* from, size_t n) {
    const size_t mask = bytes_.size() - 1, first = std::min(n, bytes_.size() - (at & mask));
    if (first) std::memcpy(&bytes_[at & mask], from, first);
    if (n > first) std::memcpy(&bytes_[0], static_cast<const uint8_t*>(from) + first, n - first);
  }
  void get(size_t at, void* to, size_t n) const {
    const size_t mask = bytes_.size() - 1, first = std::min(n, bytes_.size() - (at & mask));
    if (first) std::memcpy(to, &bytes_[at & mask], first);
    if (n > first) std::memcpy(static_cast<uint8_t*>(to) + first, &bytes_[0], n - first);
  }

  std::vector<uint8_t> bytes_;
  alignas(64) std::atomic<size_t> write_{0};
  alignas(64) std::atomic<size_t> read_{0};
};

}  // namespace media
