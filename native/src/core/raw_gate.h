// How many STUN and DTLS packets (RFC 7983) of a browser's leg reach the outside.
//
// Thread: the packet thread of its stream. Memory: cold, touched by such packets only.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "address.h"

namespace media {

/** Admits 200 packets a second of the peer, 50 of them at once, and half as many of strangers. The peer has a share of
 * its own and strangers divide eight, so that a flood starves itself alone. */
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
