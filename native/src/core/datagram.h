// Reads UDP in IPv4 from a captured frame without trusting its length fields.
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

/** The bytes of IP and UDP before the payload. */
constexpr size_t kDatagramHeader = 28;

/** Masks of an IPv4 header's flags and offset: more fragments or an offset; an offset. */
constexpr uint16_t kFragment = 0x3fff, kLaterFragment = 0x1fff;

/**
 * Reads a whole IPv4 packet of UDP without options (RFC 791 §3.1, RFC 768). Bytes behind its total length are padding of
 * the link. False for anything else: fragments, options, wrong lengths, wrong checksums. `verified`: the network card or
 * the sender's kernel answers for the UDP checksum. Otherwise it is checked here, unless it is zero (none was sent).
 */
bool read_datagram(uint8_t* packet, size_t captured, bool verified, Datagram& out);

/** Reads only the addresses and ports, of any IPv4 packet that begins a UDP datagram: one that is cut short, has
 * options, or is the first of several fragments. Checksums are ignored. */
bool read_flow(const uint8_t* packet, size_t captured, Datagram& out);

}  // namespace media
