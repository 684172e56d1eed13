// Clocks: monotonic time for measuring, wall time only for what people read.
#pragma once
#include <time.h>

#include <cstdint>

namespace media {

inline uint64_t clock_us(clockid_t id) {
  timespec t;
  clock_gettime(id, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000 + static_cast<uint64_t>(t.tv_nsec) / 1000;
}
inline uint64_t mono_us() {
  return clock_us(CLOCK_MONOTONIC);
}
inline int64_t wall_ms() {
  return static_cast<int64_t>(clock_us(CLOCK_REALTIME) / 1000);
}

}  // namespace media
