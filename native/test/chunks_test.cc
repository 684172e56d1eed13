// Chunk queues: capacity, shared chunks, and records that cross threads.
#include "../src/core/chunks.h"

#include <thread>
#include <vector>

#include "check.h"

using namespace media;

namespace {

void room() {
  auto pool = std::make_shared<ChunkPool>();
  std::vector<uint8_t> body(ChunkPool::kBytes, 7);
  const auto fill = [&](ChunkQueue& queue) {
    int n = 0;
    while (queue.push(&n, sizeof n, body.data(), 1000)) ++n;
    return n;
  };
  const auto count = [](ChunkQueue& queue) {
    int n = 0;
    queue.read([&](const uint8_t*, size_t) { return ++n > 0; });
    return n;
  };
  ChunkQueue first(pool);
  check::ok(!first.push(nullptr, 0, body.data(), ChunkPool::kBytes), "push refuses a record larger than a chunk");
  const int alone = fill(first);
  check::equal(alone, static_cast<int>(ChunkPool::kEach) * 4, "a queue takes all chunks of the pool");
  {
    ChunkQueue second(pool);
    check::equal(fill(second), alone, "a second queue adds as many chunks");
    check::equal(count(first), alone, "the reader gets every written record");
    check::ok(fill(second) >= alone - 4, "a queue takes the chunks that another one has returned");
  }
  // The pool has the chunks of two queues, but the first queue still holds the chunk that it read last.
  check::equal(fill(first), 2 * alone - 4, "the chunks of a destroyed queue stay in the pool");
  int stopped = 0;
  first.read([&](const uint8_t*, size_t) { return ++stopped < 10; });
  check::equal(stopped + count(first), 2 * alone - 4, "a stopped read continues at the next record");
}

/** One thread writes and one reads, with the pool full at times. ThreadSanitizer runs this test too. */
void threads() {
  auto pool = std::make_shared<ChunkPool>();
  ChunkQueue queue(pool);
  constexpr uint32_t kRecords = 200'000;
  std::thread writer([&] {
    uint8_t body[160] = {};
    for (uint32_t n = 0; n < kRecords; ++n) {
      body[0] = static_cast<uint8_t>(n * 31);
      while (!queue.push(&n, sizeof n, body, 1 + n % 160)) std::this_thread::yield();
    }
  });
  uint32_t next = 0, wrong = 0;
  while (next < kRecords) {
    const uint32_t before = next;
    queue.read([&](const uint8_t* bytes, size_t size) {
      uint32_t n;
      std::memcpy(&n, bytes, sizeof n);
      wrong += n != next || size != sizeof n + 1 + n % 160 || bytes[4] != static_cast<uint8_t>(n * 31);
      ++next;
      return true;
    });
    if (before == next) std::this_thread::yield();
  }
  writer.join();
  check::equal(wrong, 0u, "every record arrives whole and in order");
}

}  // namespace

void chunks_tests() {
  room();
  threads();
}
