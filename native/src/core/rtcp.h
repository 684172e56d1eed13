// RTCP (RFC 3550 §6): writes our reports, and parses what the data plane needs of the peer's. JavaScript handles the
// rest.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "rtp.h"

namespace media {

/** The data plane's share of the peer's report: its sender info, and its report block about us. */
struct PeerReport {
  bool sender_info = false;  // the packet contains a sender report
  uint32_t sender_ssrc = 0;
  uint32_t middle_ntp = 0;
  bool block = false;  // the packet contains a report block about our SSRC
  uint8_t fraction_lost = 0;
  int32_t cumulative_lost = 0;
  uint32_t jitter = 0, last_sr = 0, delay = 0;
  bool bye = false;
};

/** Parses a compound packet. False when its lengths are inconsistent. */
bool parse_rtcp(const uint8_t* p, size_t n, uint32_t our_ssrc, PeerReport& out);

/** Returns the middle 32 bits of the NTP timestamp of a time in microseconds since the epoch. */
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
/** Writes an SR or RR, an SDES with CNAME, and optionally a BYE. Returns the length, at most 128 bytes. */
size_t write_rtcp(uint8_t* p, const OurReport& r, const std::string& cname);

}  // namespace media
