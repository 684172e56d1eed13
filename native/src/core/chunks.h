// Carries records from a packet thread to another thread in recycled chunks of memory. Only waiting records use memory.
// The writer reuses the chunk that was read last. The packet thread neither allocates nor locks.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace media {

/** The header of a chunk. It is stored apart from the chunk's bytes, so that unused chunks take no memory. */
struct Chunk {
  Chunk* free = nullptr;              // the next free chunk of the pool
  std::atomic<Chunk*> next{nullptr};  // the next chunk of its queue
  uint8_t* bytes = nullptr;
};

/** The chunks of all queues that one packet thread fills. */
class ChunkPool {
 public:
  static constexpr size_t kBytes = 4096;
  /** The number of chunks that each queue adds. All queues share them, so a queue with a slow reader may take more. */
  static constexpr size_t kEach = 32;

  ChunkPool() = default;
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  /** Adds the chunks of another queue. Called on the control thread. Does not touch their memory yet. */
  void reserve() {
    if (queues_.fetch_add(1, std::memory_order_relaxed) < slabs_.size()) return;
    Slab& slab = *slabs_.emplace_back(std::make_unique_for_overwrite<Slab>());
    for (size_t i = 0; i < kEach; ++i) {
      slab.chunks[i].bytes = slab.bytes[i];
      give(&slab.chunks[i]);
    }
  }
  void release() { queues_.fetch_sub(1, std::memory_order_relaxed); }

  /** Takes a free chunk, or null when all are in use. Called on the packet thread. */
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
  /** Returns a chunk to the pool. Called on any thread. */
  void give(Chunk* chunk) {
    chunk->free = returned_.load(std::memory_order_relaxed);
    while (!returned_.compare_exchange_weak(chunk->free, chunk, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

 private:
  struct Slab {
    alignas(kBytes) uint8_t bytes[kEach][kBytes];  // one page for each chunk
    Chunk chunks[kEach];
  };
  std::atomic<size_t> queues_{0};
  std::vector<std::unique_ptr<Slab>> slabs_;  // control thread only
  Chunk* free_ = nullptr;                     // packet thread only
  std::atomic<Chunk*> returned_{nullptr};
};

/** A queue with one writer, which is the pool's packet thread, and one reader. */
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

  /** Appends a record of two parts and at least one byte. False when the pool is empty, or no chunk can hold it. */
  bool push(const void* head, size_t head_size, const void* body, size_t body_size) {
    const size_t size = head_size + body_size, need = kPrefix + size;
    if (need > room_) {
      Chunk* const fresh = need <= ChunkPool::kBytes ? pool_->take() : nullptr;
      if (!fresh) return false;
      if (room_ >= kPrefix) std::memset(at_, 0, kPrefix);  // the chunk ends here
      fresh->next.store(nullptr, std::memory_order_relaxed);
      (filling_ ? filling_->next : first_).store(fresh, std::memory_order_release);
      filling_ = fresh;
      at_ = fresh->bytes;
      room_ = ChunkPool::kBytes;
    }
    const auto prefix = static_cast<uint32_t>(size);
    std::memcpy(at_, &prefix, kPrefix);
    std::memcpy(at_ + kPrefix, head, head_size);
    if (body_size) std::memcpy(at_ + kPrefix + head_size, body, body_size);
    at_ += need;
    room_ -= need;
    written_.store(written_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    return true;
  }

  // Prefetch the memory of the next record in two steps: first the writer's position, then the bytes there.
  void fetch() const { __builtin_prefetch(&filling_, 1); }
  void fetch_bytes(size_t n) const {
    for (size_t at = 0; at < n; at += 64) __builtin_prefetch(at_ + at, 1);
  }

  /** Calls `take(bytes, size)` for each record until it returns false or no record is left. Called on the reader's
   * thread. */
  template <typename Take>
  void read(Take&& take) {
    for (const uint64_t written = written_.load(std::memory_order_acquire); done_ != written;) {
      uint32_t size = 0;
      if (left_ >= kPrefix) std::memcpy(&size, from_, kPrefix);
      if (size == 0) {
        Chunk* const next = (reading_ ? reading_->next : first_).load(std::memory_order_acquire);
        if (reading_) pool_->give(reading_);
        reading_ = next;
        from_ = next->bytes;
        left_ = ChunkPool::kBytes;
        continue;
      }
      const uint8_t* const record = from_ + kPrefix;
      from_ += kPrefix + size;
      left_ -= kPrefix + size;
      ++done_;
      if (!take(record, size_t{size})) return;
    }
  }

 private:
  static constexpr size_t kPrefix = 4;
  const std::shared_ptr<ChunkPool> pool_;
  // One cache line for the packet thread, one for the reader.
  alignas(64) Chunk* filling_ = nullptr;
  uint8_t* at_ = nullptr;
  size_t room_ = 0;
  std::atomic<uint64_t> written_{0};
  std::atomic<Chunk*> first_{nullptr};
  alignas(64) Chunk* reading_ = nullptr;
  const uint8_t* from_ = nullptr;
  size_t left_ = 0;
  uint64_t done_ = 0;
};

}  // namespace media
