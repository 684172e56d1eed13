// Captured packets: parses datagrams and flows, tracks their interface, and finds the thread that owns their port.
#include "../src/core/datagram.h"

#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "../src/core/bytes.h"
#include "../src/core/clock.h"
#include "../src/core/passage.h"
#include "../src/core/ports.h"
#include "check.h"

using namespace media;

namespace {

/** Returns a UDP datagram in IPv4 from 10.0.0.1:4000 to 10.0.0.2:5000 with correct checksums. */
std::vector<uint8_t> datagram(size_t payload) {
  std::vector<uint8_t> p(kDatagramHeader + payload);
  for (size_t i = 0; i < payload; ++i) p[kDatagramHeader + i] = static_cast<uint8_t>(i * 7 + 1);
  p[0] = 0x45;
  put16(p.data() + 2, static_cast<uint16_t>(p.size()));
  p[8] = 64;
  p[9] = 17;
  put32(p.data() + 12, 0x0a000001);
  put32(p.data() + 16, 0x0a000002);
  put16(p.data() + 20, 4000);
  put16(p.data() + 22, 5000);
  put16(p.data() + 24, static_cast<uint16_t>(8 + payload));
  const auto complement = [](const uint8_t* from, size_t n, uint32_t so_far) {
    for (size_t i = 0; i < n; ++i) so_far += i % 2 ? from[i] : uint32_t{from[i]} << 8;
    while (so_far >> 16) so_far = (so_far & 0xffff) + (so_far >> 16);
    return static_cast<uint16_t>(~so_far);
  };
  put16(p.data() + 10, complement(p.data(), 20, 0));
  put16(p.data() + 26, complement(p.data() + 20, 8 + payload, 0x0a00 + 1 + 0x0a00 + 2 + 17 + 8 + uint32_t(payload)));
  return p;
}

void datagrams() {
  Datagram d;
  for (const size_t payload : {0u, 1u, 2u, 3u, 172u, 173u}) {
    auto p = datagram(payload);
    check::ok(read_datagram(p.data(), p.size(), false, d) && d.size == payload && d.from_port == 4000 &&
                  d.to_port == 5000 && get32(reinterpret_cast<uint8_t*>(&d.from_ip)) == 0x0a000001,
              "a datagram of " + std::to_string(payload) + " bytes with correct checksums is accepted");
  }
  const auto reads = [&](const std::function<void(std::vector<uint8_t>&)>& change, bool verified = true) {
    auto p = datagram(172);
    change(p);
    // Correct the checksum of the changed IP header, so that it is not the reason for a refusal.
    put16(p.data() + 10, 0);
    uint32_t sum = 0;
    for (size_t i = 0; i < 20; i += 2) sum += get16(p.data() + i);
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    put16(p.data() + 10, static_cast<uint16_t>(~sum));
    return read_datagram(p.data(), p.size(), verified, d);
  };
  check::ok(reads([](auto& p) { p.resize(p.size() + 20); }), "link padding is accepted");
  check::equal(d.size, size_t{172}, "the payload excludes link padding");
  check::ok(reads([](auto& p) { put16(p.data() + 24, 108); }) && d.size == 100,
            "a short UDP length cuts the payload, as a socket does");
  check::ok(!reads([](auto& p) { put16(p.data() + 24, 181); }), "a UDP length beyond the packet is refused");
  check::ok(!reads([](auto& p) { put16(p.data() + 24, 7); }), "a UDP length below the header size is refused");
  check::ok(!reads([](auto& p) { put16(p.data() + 2, 201); }), "a total length beyond the frame is refused");
  check::ok(!reads([](auto& p) { put16(p.data() + 2, 27); }),
            "a total length below the size of both headers is refused");
  check::ok(!reads([](auto& p) { p[0] = 0x46; }), "a packet with IP options is refused");
  check::ok(!reads([](auto& p) { p[6] = 0x20; }) && !reads([](auto& p) { p[7] = 1; }), "a fragment is refused");
  check::ok(!reads([](auto& p) { p[9] = 6; }), "a packet of another protocol is refused");
  check::ok(!reads([](auto& p) { p[100] ^= 1; }, false),
            "a wrong UDP checksum is refused when nothing has verified it");
  check::ok(reads([](auto& p) { p[100] ^= 1; }), "the UDP checksum is not checked when the card has verified it");
  check::ok(reads([](auto& p) { put16(p.data() + 26, 0); }, false), "a datagram without a UDP checksum is accepted");
  auto p = datagram(172);
  p[10] ^= 1;
  check::ok(!read_datagram(p.data(), p.size(), true, d), "a wrong IP header checksum is refused");
  bool any = false;
  for (size_t n = 0; n < p.size(); ++n) any |= read_datagram(std::vector<uint8_t>(p.begin(), p.begin() + n).data(), n, true, d);
  check::ok(!any, "a frame truncated at any byte is refused");
}

void flows() {
  Datagram d;
  const auto reads = [&](std::vector<uint8_t> p) {
    return read_flow(p.data(), p.size(), d) && d.from_port == 4000 && d.to_port == 5000 &&
           get32(reinterpret_cast<uint8_t*>(&d.from_ip)) == 0x0a000001;
  };
  auto p = datagram(172);
  check::ok(reads(p) && reads({p.begin(), p.begin() + 28}), "the headers alone give the addresses and ports");
  auto first = p;
  first[6] = 0x20;
  auto later = p;
  later[7] = 1;
  check::ok(reads(first) && !reads(later), "only the first fragment gives the ports");
  auto options = p;
  options[0] = 0x47;
  options.insert(options.begin() + 20, 8, uint8_t{1});
  check::ok(reads(options), "the ports are found behind IP options");
  auto other = p;
  other[9] = 6;
  auto six = p;
  six[0] = 0x65;
  auto short_header = p;
  short_header[0] = 0x44;
  check::ok(!reads(other) && !reads(six) && !reads(short_header),
            "other protocols, IP versions and short header lengths give no ports");
  bool any = false;
  for (size_t n = 0; n < 36; ++n) any |= reads({options.begin(), options.begin() + n});
  check::ok(!any, "a packet truncated before its ports gives none");
}

void passages() {
  using Seen = Passage::Seen;
  Passage one;
  bool here = true;
  for (uint32_t mark = 1; mark < 20; ++mark) here &= one.see(3, mark) == Seen::here;
  check::ok(here, "each packet of a flow on one interface counts");
  check::ok(one.see(4, 20) == Seen::elsewhere && one.see(4, 21) == Seen::moved,
            "two packets in a row on another interface mean that the flow has moved");
  check::ok(one.see(4, 22) == Seen::here && one.last() == 22, "a moved flow counts at its new interface");
  check::ok(one.see(5, 23) == Seen::elsewhere && one.see(4, 23) == Seen::here && one.see(5, 24) == Seen::elsewhere,
            "a packet that also shows at a lower interface does not mean a move");
  // A VLAN on a bond: each packet shows three times, and counts once, at the last interface.
  Passage stacked;
  int counted = 0;
  for (uint32_t mark = 1; mark < 20; ++mark)
    for (const int interface : {2, 5, 7}) counted += stacked.see(interface, mark) == Seen::here;
  check::equal(counted, 19, "a packet that shows three times counts once");
  check::ok(stacked.see(7, 20) == Seen::here && stacked.see(2, 21) == Seen::elsewhere,
            "the packet counts at the topmost interface");
}

void port_classes() {
  Address local;
  Address::parse("127.0.0.1", 0, local);
  PortPool pool(local, 0, 0, 0, {}, 3);
  int right = 0;
  for (unsigned i = 0; i < 30; ++i) {
    PortPair pair;
    if (!pool.open(pair, mono_us(), 4, i % 3)) continue;
    right += pool.port_class(i % 3).holds(pair.rtp_port) && !pool.port_class((i + 1) % 3).holds(pair.rtp_port);
    ::close(pair.rtp_fd);
    ::close(pair.rtcp_fd);
  }
  check::equal(right, 30, "a port belongs only to the thread that asked for it");
}

}  // namespace

void datagram_tests() {
  datagrams();
  flows();
  passages();
  port_classes();
}
