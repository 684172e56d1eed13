// Lines of memory. With a thousand calls the caches hold nothing of the next packet's stream, so it is fetched ahead.
#pragma once
#include <cstddef>

namespace media {

constexpr size_t kLine = 64;

/** Fetches `count` lines from `at` on, for writing. */
inline void fetch_lines(const void* at, size_t count) {
  const char* line = static_cast<const char*>(at);
  for (size_t i = 0; i < count; ++i) __builtin_prefetch(line + i * kLine, 1);
}

}  // namespace media
