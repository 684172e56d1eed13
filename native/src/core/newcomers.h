// Senders that neither the SDP nor the SIP source address names.
//
// Thread: the packet thread of its stream. Memory: cold, used until the stream has latched and while its peer
// is silent.
#pragma once
#include <cstdint>

#include "address.h"
#include "rtp.h"

namespace media {

/** Detects a sender of three consecutive packets, most likely the peer behind a NAT. */
class Newcomers {
 public:
  /** Takes a packet. True when it is at least its sender's third in a row. */
  bool persists(const Address& from, const RtpView& v) {
    Candidate& c = candidate(from, v);
    c.in_a_row = c.ssrc == v.ssrc && c.next_seq == v.seq ? c.in_a_row + 1 : 1;
    c.ssrc = v.ssrc;
    c.next_seq = static_cast<uint16_t>(v.seq + 1);
    return c.in_a_row >= 3;
  }
  void forget() {
    for (auto& c : candidates_) c = Candidate{};
  }

 private:
  static constexpr unsigned kMost = 4;
  struct Candidate {
    Address from;
    uint32_t ssrc = 0;
    uint16_t next_seq = 0;
    int in_a_row = 0;
  };
  Candidate& candidate(const Address& from, const RtpView& v) {
    for (auto& known : candidates_)
      if (known.from == from) return known;
    Candidate& c = candidates_[next_++ % kMost];
    c = Candidate{from, v.ssrc, v.seq, 0};
    return c;
  }
  Candidate candidates_[kMost];
  unsigned next_ = 0;
};

}  // namespace media
