// Prefetching of cache lines. With a thousand calls the next packet's stream is no longer in the caches.
#pragma once
#include <cstddef>

namespace media {

constexpr size_t kLine = 64;

/** Prefetches `count` lines from `at` on, for writing. */
inline void fetch_lines(const void* at, size_t count) {
  const char* line = static_cast<const char*>(at);
  for (size_t i = 0; i < count; ++i) __builtin_prefetch(line + i * kLine, 1);
}

}  // namespace media
