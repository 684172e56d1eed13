// Parses UDP over IPv4 in a captured frame without trusting its length fields.
#pragma once
#include <cstddef>
#include <cstdint>

namespace media {

/** IP addresses are in network byte order, as in the kernel's structures; ports are in host byte order. */
struct Datagram {
  uint32_t from_ip = 0, to_ip = 0;
  uint16_t from_port = 0, to_port = 0;
  uint8_t* payload = nullptr;
  size_t size = 0;
};

/** The size of the IPv4 and UDP headers. */
constexpr size_t kDatagramHeader = 28;

/** Masks of the flags and offset of an IPv4 header. The first matches every fragment, the second all but the first. */
constexpr uint16_t kFragment = 0x3fff, kLaterFragment = 0x1fff;

/**
 * Parses a whole UDP datagram in an IPv4 packet without options (RFC 791 §3.1, RFC 768). Ignores link padding after the
 * packet's total length. False for fragments, options, wrong lengths and wrong checksums. `verified`: the network card
 * or the sender's kernel vouches for the UDP checksum. Otherwise checks it here, unless it is zero (not sent).
 */
bool read_datagram(uint8_t* packet, size_t captured, bool verified, Datagram& out);

/** Parses only the addresses and ports of an IPv4 packet that begins a UDP datagram. The packet may be truncated, have
 * options, or be the first of several fragments. Ignores checksums. */
bool read_flow(const uint8_t* packet, size_t captured, Datagram& out);

}  // namespace media
