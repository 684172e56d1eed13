// Follows through which of the host's interfaces a flow comes.
#pragma once
#include <cstdint>

namespace media {

/**
 * A packet may show several times on its way up: at a bond's member or a bridge's port, at the bond, at a VLAN on it.
 * From the last of these interfaces it goes on to its socket. A flow that moves to another way in no longer shows at the
 * known interface, and other filter rules may hold there.
 */
class Passage {
 public:
  enum class Seen : uint8_t { here, elsewhere, moved };

  /** `mark` tells packets apart. Moved: neither this packet nor the one before showed at the known interface. */
  Seen see(int interface, uint32_t mark) {
    if (interface == interface_ || interface_ == 0) {
      interface_ = interface;
      last_ = mark;
      pending_ = 0;
      return Seen::here;
    }
    if (mark == last_) {  // the same packet, further up
      interface_ = interface;
      return Seen::elsewhere;
    }
    const bool moved = pending_ != 0 && pending_ != mark;
    pending_ = mark;
    if (!moved) return Seen::elsewhere;
    *this = Passage{};
    return Seen::moved;
  }

  uint32_t last() const { return last_; }

 private:
  int interface_ = 0;
  uint32_t last_ = 0, pending_ = 0;
};

}  // namespace media
