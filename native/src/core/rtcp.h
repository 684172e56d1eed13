// RTCP (RFC 3550 §6): our reports, and what of the peer's reports the data plane itself needs. The rest goes to the
// slow path.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "rtp.h"

namespace media {

/** Of the peer, about what we send. */
struct PeerReport {
  bool sender_info = false;  // a sender report was in it
  uint32_t sender_ssrc = 0;
  uint32_t middle_ntp = 0;
  bool block = false;  // a report block about our SSRC was in it
  uint8_t fraction_lost = 0;
  int32_t cumulative_lost = 0;
  uint32_t jitter = 0, last_sr = 0, delay = 0;
  bool bye = false;
};

/** Walks a compound packet; false when its lengths do not fit together. */
bool parse_rtcp(const uint8_t* p, size_t n, uint32_t our_ssrc, PeerReport& out);

/** Middle 32 bits of an NTP timestamp of that many microseconds since the epoch. */
uint32_t middle_ntp(uint64_t wall_us);

struct OurReport {
  uint32_t ssrc = 0, rtp_ts = 0, packets = 0, octets = 0;
  bool sender = false, bye = false;
  uint64_t wall_us = 0;
  bool block = false;
  uint32_t peer_ssrc = 0, extended_max = 0, jitter = 0, last_sr = 0, delay = 0;
  uint8_t fraction_lost = 0;
  int32_t cumulative_lost = 0;
};
/** SR or RR, SDES with CNAME, and BYE; at most 128 bytes. */
size_t write_rtcp(uint8_t* p, const OurReport& r, const std::string& cname);

}  // namespace media
