// The user data of an io_uring request: its kind, the place of its socket in the ring's table, and that place's turn.
#pragma once
#include <cstdint>

namespace media {

enum class Tag : uint8_t { receive = 1, send, epoll };

inline uint64_t tag_of(Tag what, uint32_t place, uint32_t turn) {
  return static_cast<uint64_t>(turn) << 32 | place << 4 | static_cast<uint32_t>(what);
}
inline Tag what_of(uint64_t tag) {
  return static_cast<Tag>(tag & 15);
}
inline uint32_t place_of(uint64_t tag) {
  return static_cast<uint32_t>(tag) >> 4;
}
inline uint32_t turn_of(uint64_t tag) {
  return static_cast<uint32_t>(tag >> 32);
}

}  // namespace media
