#include "rtcp.h"

#include <algorithm>
#include <cstring>

#include "bytes.h"

namespace media {

static void read_blocks(const uint8_t* p, size_t count, uint32_t our_ssrc, PeerReport& out) {
  for (size_t i = 0; i < count; ++i, p += 24) {
    if (get32(p) != our_ssrc) continue;
    out.block = true;
    out.fraction_lost = p[4];
    const uint32_t lost = get32(p + 4) & 0xffffff;
    out.cumulative_lost = lost & 0x800000 ? static_cast<int32_t>(lost) - 0x1000000 : static_cast<int32_t>(lost);
    out.jitter = get32(p + 12);
    out.last_sr = get32(p + 16);
    out.delay = get32(p + 20);
  }
}

bool parse_rtcp(const uint8_t* p, size_t n, uint32_t our_ssrc, PeerReport& out) {
  if (!looks_like_rtcp(p, n)) return false;
  while (n > 0) {
    if (n < 4 || (p[0] & 0xc0) != 0x80) return false;
    const size_t bytes = 4 + 4u * get16(p + 2), count = p[0] & 0x1f;
    if (bytes > n) return false;
    if (p[1] == 200) {
      if (bytes < 28 + 24 * count) return false;
      out.sender_info = true;
      out.sender_ssrc = get32(p + 4);
      out.middle_ntp = get32(p + 10);
      read_blocks(p + 28, count, our_ssrc, out);
    } else if (p[1] == 201) {
      if (bytes < 8 + 24 * count) return false;
      read_blocks(p + 8, count, our_ssrc, out);
    } else if (p[1] == 203) {
      out.bye = true;
    }
    p += bytes;
    n -= bytes;
  }
  return true;
}

static uint64_t ntp(uint64_t wall_us) {
  const uint64_t seconds = wall_us / 1'000'000 + 2'208'988'800u;
  return seconds << 32 | ((wall_us % 1'000'000) << 32) / 1'000'000;
}

uint32_t middle_ntp(uint64_t wall_us) {
  return static_cast<uint32_t>(ntp(wall_us) >> 16);
}

size_t write_rtcp(uint8_t* p, const OurReport& r, const std::string& cname) {
  uint8_t* at = p;
  const auto head = [](uint8_t* q, size_t count, uint8_t type, size_t bytes) {
    q[0] = static_cast<uint8_t>(0x80 | count);
    q[1] = type;
    put16(q + 2, static_cast<uint16_t>(bytes / 4 - 1));
  };
  const size_t blocks = r.block ? 1 : 0, report = (r.sender ? 28 : 8) + 24 * blocks;
  head(at, blocks, r.sender ? 200 : 201, report);
  put32(at + 4, r.ssrc);
  if (r.sender) {
    put64(at + 8, ntp(r.wall_us));
    put32(at + 16, r.rtp_ts);
    put32(at + 20, r.packets);
    put32(at + 24, r.octets);
  }
  if (r.block) {
    uint8_t* b = at + (r.sender ? 28 : 8);
    put32(b, r.peer_ssrc);
    put32(b + 4, static_cast<uint32_t>(r.fraction_lost) << 24 | (static_cast<uint32_t>(r.cumulative_lost) & 0xffffff));
    put32(b + 8, r.extended_max);
    put32(b + 12, r.jitter);
    put32(b + 16, r.last_sr);
    put32(b + 20, r.delay);
  }
  at += report;
  const size_t name = std::min<size_t>(cname.size(), 32), sdes = (4 + 4 + 2 + name + 1 + 3) / 4 * 4;
  std::memset(at, 0, sdes);
  head(at, 1, 202, sdes);
  put32(at + 4, r.ssrc);
  at[8] = 1;
  at[9] = static_cast<uint8_t>(name);
  std::memcpy(at + 10, cname.data(), name);
  at += sdes;
  if (r.bye) {
    head(at, 1, 203, 8);
    put32(at + 4, r.ssrc);
    at += 8;
  }
  return static_cast<size_t>(at - p);
}

}  // namespace media
