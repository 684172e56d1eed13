// Limits the rate of STUN and DTLS packets (RFC 7983) that a browser's leg passes to JavaScript.
//
// Thread: the packet thread of its stream. Memory: cold, used only by such packets.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "address.h"

namespace media {

/** One token bucket for the peer (200 packets/s, bursts of 50) and eight for strangers (half of that each). A
 * stranger's address and port select its bucket, so a flood starves only senders in the same bucket. */
class RawGate {
 public:
  bool passes(const Address& from, bool peer, uint64_t now_us) {
    uint64_t& spent_us = spent_us_[peer ? 0 : 1 + share_of(from)];
    spent_us = std::max(spent_us, now_us);
    if (spent_us - now_us > 250'000) return false;
    spent_us += peer ? 5'000 : 10'000;
    return true;
  }

 private:
  static constexpr size_t kStrangerShares = 8;
  static size_t share_of(const Address& from) {
    size_t share = 0;
    for (const uint8_t byte : from.ip) share = share * 31 + byte;
    return (share * 31 + from.port) % kStrangerShares;
  }
  uint64_t spent_us_[1 + kStrangerShares] = {};
};

}  // namespace media
