// What is told of a captured packet: where it goes, whether it is whole, by which way it came, whose port that is.
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

/** UDP in IPv4 from 10.0.0.1:4000 to 10.0.0.2:5000, with its sums. */
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
              "a datagram of " + std::to_string(payload) + " bytes is read, its sums hold");
  }
  const auto reads = [&](const std::function<void(std::vector<uint8_t>&)>& change, bool verified = true) {
    auto p = datagram(172);
    change(p);
    // What is changed in the IP header is summed up anew: it is not for its sum that it is refused.
    put16(p.data() + 10, 0);
    uint32_t sum = 0;
    for (size_t i = 0; i < 20; i += 2) sum += get16(p.data() + i);
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    put16(p.data() + 10, static_cast<uint16_t>(~sum));
    return read_datagram(p.data(), p.size(), verified, d);
  };
  check::ok(reads([](auto& p) { p.resize(p.size() + 20); }), "padding of the link is left out");
  check::equal(d.size, size_t{172}, "with the payload as long as it says");
  check::ok(reads([](auto& p) { put16(p.data() + 24, 108); }) && d.size == 100, "as the socket does with a short length");
  check::ok(!reads([](auto& p) { put16(p.data() + 24, 181); }), "a length of UDP beyond the packet is refused");
  check::ok(!reads([](auto& p) { put16(p.data() + 24, 7); }), "one below its header too");
  check::ok(!reads([](auto& p) { put16(p.data() + 2, 201); }), "a total length beyond the frame");
  check::ok(!reads([](auto& p) { put16(p.data() + 2, 27); }), "one below both headers");
  check::ok(!reads([](auto& p) { p[0] = 0x46; }), "IP options");
  check::ok(!reads([](auto& p) { p[6] = 0x20; }) && !reads([](auto& p) { p[7] = 1; }), "fragments");
  check::ok(!reads([](auto& p) { p[9] = 6; }), "other protocols");
  check::ok(!reads([](auto& p) { p[100] ^= 1; }, false), "a wrong sum, where nobody answers for it");
  check::ok(reads([](auto& p) { p[100] ^= 1; }), "but it is believed where the card has looked");
  check::ok(reads([](auto& p) { put16(p.data() + 26, 0); }, false), "a sum that was not sent is none to check");
  auto p = datagram(172);
  p[10] ^= 1;
  check::ok(!read_datagram(p.data(), p.size(), true, d), "a wrong sum of the IP header");
  bool any = false;
  for (size_t n = 0; n < p.size(); ++n) any |= read_datagram(std::vector<uint8_t>(p.begin(), p.begin() + n).data(), n, true, d);
  check::ok(!any, "a frame cut short anywhere");
}

void flows() {
  Datagram d;
  const auto reads = [&](std::vector<uint8_t> p) {
    return read_flow(p.data(), p.size(), d) && d.from_port == 4000 && d.to_port == 5000 &&
           get32(reinterpret_cast<uint8_t*>(&d.from_ip)) == 0x0a000001;
  };
  auto p = datagram(172);
  check::ok(reads(p) && reads({p.begin(), p.begin() + 28}), "from where to where: a head is enough");
  auto first = p;
  first[6] = 0x20;
  auto later = p;
  later[7] = 1;
  check::ok(reads(first) && !reads(later), "the first fragment tells it, the others do not");
  auto options = p;
  options[0] = 0x47;
  options.insert(options.begin() + 20, 8, uint8_t{1});
  check::ok(reads(options), "it is read behind options");
  auto other = p;
  other[9] = 6;
  auto six = p;
  six[0] = 0x65;
  auto short_header = p;
  short_header[0] = 0x44;
  check::ok(!reads(other) && !reads(six) && !reads(short_header), "not of other protocols, nor of what lies");
  bool any = false;
  for (size_t n = 0; n < 36; ++n) any |= reads({options.begin(), options.begin() + n});
  check::ok(!any, "nor of what is cut short before it");
}

void passages() {
  using Seen = Passage::Seen;
  Passage one;
  bool here = true;
  for (uint32_t mark = 1; mark < 20; ++mark) here &= one.see(3, mark) == Seen::here;
  check::ok(here, "a flow comes by one interface");
  check::ok(one.see(4, 20) == Seen::elsewhere && one.see(4, 21) == Seen::moved, "two by another: it has moved");
  check::ok(one.see(4, 22) == Seen::here && one.last() == 22, "and is known there");
  check::ok(one.see(5, 23) == Seen::elsewhere && one.see(4, 23) == Seen::here && one.see(5, 24) == Seen::elsewhere,
            "one that shows below on its way up has not");
  // A VLAN on a bond: each packet shows three times, and counts once, where it is last.
  Passage stacked;
  int counted = 0;
  for (uint32_t mark = 1; mark < 20; ++mark)
    for (const int interface : {2, 5, 7}) counted += stacked.see(interface, mark) == Seen::here;
  check::equal(counted, 19, "each packet counts once, however often it shows");
  check::ok(stacked.see(7, 20) == Seen::here && stacked.see(2, 21) == Seen::elsewhere, "at the topmost interface");
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
  check::equal(right, 30, "a port belongs to the thread that asked for it, and to no other");
}

}  // namespace

void datagram_tests() {
  datagrams();
  flows();
  passages();
  port_classes();
}
