// Tracks the host interface through which a flow arrives.
#pragma once
#include <cstdint>

namespace media {

/**
 * The packet ring may show one packet several times on its way up: at a bond's member or a bridge's port, at the bond,
 * and at a VLAN on it. The last of these interfaces passes it to its socket. A flow that takes another path no longer
 * shows at the known interface, and other filter rules may apply to the new path.
 */
class Passage {
 public:
  enum class Seen : uint8_t { here, elsewhere, moved };

  /** Takes a frame; `mark` identifies its packet. Returns `moved` when neither this packet nor the previous one showed
   * at the known interface. */
  Seen see(int interface, uint32_t mark) {
    if (interface == interface_ || interface_ == 0) {
      interface_ = interface;
      last_ = mark;
      pending_ = 0;
      return Seen::here;
    }
    if (mark == last_) {  // the same packet at the next interface up
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
