// Records from a packet thread to another thread, in chunks of memory that go round: only what waits takes memory, the
// chunk that was read last is filled next, and nothing is allocated or locked where packets pass.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace media {

struct Chunk {
  Chunk* free = nullptr;             // the next one in the pool
  std::atomic<Chunk*> next{nullptr};  // the next one of its queue
  std::atomic<uint32_t> filled{0};
  uint8_t* bytes = nullptr;
};

/** The chunks of all queues that one packet thread fills. */
class ChunkPool {
 public:
  static constexpr size_t kBytes = 4096;
  /** So many chunks come with each queue. All share them, so that a queue whose reader is away may take more. */
  static constexpr size_t kEach = 32;

  ChunkPool() = default;
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  /** Another queue comes; on the control thread. Its memory is not touched before it is needed. */
  void reserve() {
    if (queues_.fetch_add(1, std::memory_order_relaxed) < slabs_.size()) return;
    Slab& slab = *slabs_.emplace_back(std::make_unique_for_overwrite<Slab>());
    for (size_t i = 0; i < kEach; ++i) {
      slab.chunks[i].bytes = slab.bytes[i];
      give(&slab.chunks[i]);
    }
  }
  void release() { queues_.fetch_sub(1, std::memory_order_relaxed); }

  /** On the packet thread; null when all are in use. */
  Chunk* take() {
    if (returned_.load(std::memory_order_relaxed)) {
      Chunk* back = returned_.exchange(nullptr, std::memory_order_acquire);
      while (back) {
        Chunk* const next = back->free;
        back->free = free_;
        free_ = back;
        back = next;
      }
    }
    Chunk* const chunk = free_;
    if (chunk) free_ = chunk->free;
    return chunk;
  }
  /** From any thread. */
  void give(Chunk* chunk) {
    chunk->free = returned_.load(std::memory_order_relaxed);
    while (!returned_.compare_exchange_weak(chunk->free, chunk, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

 private:
  struct Slab {
    Chunk chunks[kEach];
    uint8_t bytes[kEach][kBytes];
  };
  std::atomic<size_t> queues_{0};
  std::vector<std::unique_ptr<Slab>> slabs_;  // the control thread's
  Chunk* free_ = nullptr;                     // the packet thread's
  std::atomic<Chunk*> returned_{nullptr};
};

/** One writer, the packet thread of the pool, and one reader. */
class ChunkQueue {
 public:
  explicit ChunkQueue(std::shared_ptr<ChunkPool> pool) : pool_(std::move(pool)) { pool_->reserve(); }
  ~ChunkQueue() {
    for (Chunk* chunk = reading_ ? reading_ : first_.load(std::memory_order_acquire); chunk;) {
      Chunk* const next = chunk->next.load(std::memory_order_acquire);
      pool_->give(chunk);
      chunk = next;
    }
    pool_->release();
  }
  ChunkQueue(const ChunkQueue&) = delete;
  ChunkQueue& operator=(const ChunkQueue&) = delete;

  /** Appends a record made of two parts; false when there is no room, or never will be. */
  bool push(const void* head, size_t head_size, const void* body, size_t body_size) {
    const size_t size = head_size + body_size, need = kPrefix + size;
    if (!filling_ || filled_ + need > ChunkPool::kBytes) {
      Chunk* const fresh = need <= ChunkPool::kBytes ? pool_->take() : nullptr;
      if (!fresh) return false;
      fresh->next.store(nullptr, std::memory_order_relaxed);
      fresh->filled.store(0, std::memory_order_relaxed);
      (filling_ ? filling_->next : first_).store(fresh, std::memory_order_release);
      filling_ = fresh;
      filled_ = 0;
    }
    uint8_t* const at = filling_->bytes + filled_;
    const auto prefix = static_cast<uint32_t>(size);
    std::memcpy(at, &prefix, kPrefix);
    std::memcpy(at + kPrefix, head, head_size);
    std::memcpy(at + kPrefix + head_size, body, body_size);
    filled_ += need;
    filling_->filled.store(static_cast<uint32_t>(filled_), std::memory_order_release);
    return true;
  }

  void fetch() const { __builtin_prefetch(&filling_, 1); }

  /** On the reader's thread: hands over each record, `take(bytes, size)`, until that says false or none is left. */
  template <typename Take>
  void read(Take&& take) {
    if (!reading_ && !(reading_ = first_.load(std::memory_order_acquire))) return;
    for (;;) {
      // Whether there is a next one is asked first: only then is what this one holds final.
      Chunk* const next = reading_->next.load(std::memory_order_acquire);
      for (const size_t filled = reading_->filled.load(std::memory_order_acquire); read_ < filled;) {
        const uint8_t* const at = reading_->bytes + read_;
        uint32_t size;
        std::memcpy(&size, at, kPrefix);
        read_ += kPrefix + size;
        if (!take(at + kPrefix, size_t{size})) return;
      }
      if (!next) return;
      pool_->give(reading_);
      reading_ = next;
      read_ = 0;
    }
  }

 private:
  static constexpr size_t kPrefix = 4;
  const std::shared_ptr<ChunkPool> pool_;
  alignas(64) Chunk* filling_ = nullptr;
  size_t filled_ = 0;
  std::atomic<Chunk*> first_{nullptr};
  alignas(64) Chunk* reading_ = nullptr;
  size_t read_ = 0;
};

}  // namespace media
