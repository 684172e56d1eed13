// UDP in IPv4 as it lies in a captured frame, read without trust in what its length fields say.
#pragma once
#include <cstddef>
#include <cstdint>

namespace media {

/** IP addresses in network byte order, as the kernel's own structures have them; ports in host byte order. */
struct Datagram {
  uint32_t from_ip = 0, to_ip = 0;
  uint16_t from_port = 0, to_port = 0;
  uint8_t* payload = nullptr;
  size_t size = 0;
};

/** Of IP and UDP together, before the payload. */
constexpr size_t kDatagramHeader = 28;

/** Of an IPv4 header's flags and offset: more fragments, or an offset; an offset. */
constexpr uint16_t kFragment = 0x3fff, kLaterFragment = 0x1fff;

/**
 * A whole IPv4 packet of UDP without options (RFC 791 §3.1, RFC 768); what lies behind its total length is padding of the
 * link. False for all else: fragments, options, lengths that lie, sums that are wrong. `verified`: the network card or
 * the sender's own kernel answers for the sum of UDP; else it is checked here, unless it is zero (none was sent).
 */
bool read_datagram(uint8_t* packet, size_t captured, bool verified, Datagram& out);

/** Only from where to where, and of any IPv4 packet that begins a datagram of UDP: cut short, with options, the first of
 * several fragments. No sum is looked at. */
bool read_flow(const uint8_t* packet, size_t captured, Datagram& out);

}  // namespace media
