#include "datagram.h"

#include <netinet/in.h>

#include <cstring>

#include "bytes.h"

namespace media {

namespace {
constexpr size_t kIpHeader = 20, kUdpHeader = 8;

/** Returns the RFC 1071 sum of the words in memory order, which is valid in either byte order. The sum of data with a
 * correct checksum is 0xffff. */
uint32_t sum(const uint8_t* p, size_t n, uint32_t so_far) {
  uint64_t total = so_far;
  for (; n >= 4; p += 4, n -= 4) {
    uint32_t word;
    std::memcpy(&word, p, 4);
    total += word;
  }
  uint32_t rest = 0;
  std::memcpy(&rest, p, n);
  total += rest;
  total = (total & 0xffffffff) + (total >> 32);
  total = (total & 0xffff) + (total >> 16);
  total = (total & 0xffff) + (total >> 16);
  return static_cast<uint32_t>((total & 0xffff) + (total >> 16));
}

void read_ends(const uint8_t* packet, const uint8_t* udp, Datagram& out) {
  std::memcpy(&out.from_ip, packet + 12, 4);
  std::memcpy(&out.to_ip, packet + 16, 4);
  out.from_port = get16(udp);
  out.to_port = get16(udp + 2);
}
}  // namespace

bool read_datagram(uint8_t* packet, size_t captured, bool verified, Datagram& out) {
  if (captured < kIpHeader + kUdpHeader || packet[0] != 0x45 || packet[9] != IPPROTO_UDP) return false;
  const size_t total = get16(packet + 2);
  if (total > captured || total < kIpHeader + kUdpHeader || get16(packet + 6) & kFragment) return false;
  if (sum(packet, kIpHeader, 0) != 0xffff) return false;
  uint8_t* udp = packet + kIpHeader;
  const size_t size = get16(udp + 4);
  if (size < kUdpHeader || size > total - kIpHeader) return false;
  if (!verified && get16(udp + 6) != 0) {
    uint8_t pseudo[12] = {};
    std::memcpy(pseudo, packet + 12, 8);
    pseudo[9] = IPPROTO_UDP;
    put16(pseudo + 10, static_cast<uint16_t>(size));
    if (sum(udp, size, sum(pseudo, sizeof pseudo, 0)) != 0xffff) return false;
  }
  read_ends(packet, udp, out);
  out.payload = udp + kUdpHeader;
  out.size = size - kUdpHeader;
  return true;
}

bool read_flow(const uint8_t* packet, size_t captured, Datagram& out) {
  if (captured < kIpHeader || packet[0] >> 4 != 4 || packet[9] != IPPROTO_UDP || get16(packet + 6) & kLaterFragment)
    return false;
  const size_t header = (packet[0] & 15u) * 4;
  if (header < kIpHeader || captured < header + kUdpHeader) return false;
  out = {};
  read_ends(packet, packet + header, out);
  return true;
}

}  // namespace media
