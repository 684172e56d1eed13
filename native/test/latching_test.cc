// Which senders a stream accepts: the address in the SDP, the source of the SIP, or a persistent sender.
#include <vector>

#include "check.h"
#include "legs.h"

using namespace legs;

namespace {

void latching() {
  const Address signalled = address("192.0.2.1", 4000), nat = address("198.51.100.7", 6000),
                stranger = address("203.0.113.9", 7000);
  {
    World w;
    TestLeg leg(w, 1, {});
    leg.stream->describe(config(signalled, kUlaw), w.now);
    leg.receive(rtp(0, 1, 0, 1), stranger);
    leg.receive(rtp(0, 1, 0, 1), signalled);
    check::ok(leg.counters->latched && leg.counters->packets_received == 1 && leg.counters->strangers == 1,
              "a stream latches to the signalled address at once, and not to a stranger");
    for (uint16_t i = 0; i < 500; ++i) {
      w.run(20);
      leg.receive(rtp(0, i, i * 160u, 99), stranger);
    }
    check::ok(leg.counters->strangers == 501 && leg.counters->packets_received == 1,
              "a stranger that keeps sending never takes over a latched stream");
    leg.stream->describe(config(nat, kUlaw), w.now);
    leg.receive(rtp(0, 2, 160, 1), signalled);
    leg.receive(rtp(0, 3, 320, 1), nat);
    check::ok(leg.counters->packets_received == 2 && leg.counters->strangers == 502, "a new SDP moves the latch");
  }
  {
    World w;
    TestLeg leg(w, 1, {});
    const Address before = address("192.0.2.1", 4000), after = address("192.0.2.1", 5000),
                  third = address("192.0.2.1", 6000);
    leg.stream->describe(config(before, kUlaw), w.now);
    leg.receive(rtp(0, 1, 160, 1), before);
    leg.stream->describe(config(after, kUlaw), w.now);
    leg.receive(rtp(0, 2, 320, 1), before);
    check::ok(!leg.counters->latched, "a late packet from the previous port does not move a stream back");
    leg.receive(rtp(0, 3, 480, 1), after);
    check::ok(leg.counters->latched && leg.counters->packets_received == 2,
              "a stream latches to the new port of a new SDP");
    leg.stream->describe(config(third, kUlaw), w.now);
    w.run(2100);
    leg.receive(rtp(0, 4, 640, 1), after);
    check::ok(leg.counters->latched, "a peer that keeps its old port despite its SDP is accepted after 2 s");
  }
  {
    World w;
    TestLeg leg(w, 1, {});
    leg.stream->describe(config(signalled, kUlaw), w.now);
    for (uint16_t i = 0; i < 10; ++i) {
      leg.receive(rtp(0, i, i * 160u, 5), nat);
      w.run(20);
    }
    check::ok(!leg.counters->latched, "an unknown address is not latched in the first second");
    w.run(1000);
    leg.receive(rtp(0, 10, 1600, 5), nat);
    check::ok(leg.counters->latched, "after a second an unknown sender of consecutive packets is latched");
  }
  {
    World w;
    TestLeg leg(w, 1, {});
    leg.stream->describe(config(signalled, kUlaw), w.now);
    leg.stream->prove({nat});
    leg.receive(rtp(0, 1, 160, 5), nat);
    check::ok(leg.counters->latched && leg.counters->packets_received == 1,
              "an address that a check proved is accepted at once");
    leg.receive(rtp(0, 2, 320, 5), signalled);
    leg.receive(rtp(0, 3, 480, 5), nat);
    check::ok(leg.counters->packets_received == 3 && leg.counters->strangers == 0,
              "the peer may send from any proved address, and goes back and forth");
    leg.receive(rtp(0, 4, 640, 5), stranger);
    check::ok(leg.counters->strangers == 1, "beside proved addresses a stranger stays one");
    leg.stream->describe(config(signalled, kUlaw), w.now);
    leg.stream->prove({});
    leg.receive(rtp(0, 5, 800, 5), signalled);
    w.run(2100);
    leg.receive(rtp(0, 6, 960, 5), signalled);
    leg.receive(rtp(0, 7, 1120, 5), nat);
    check::ok(leg.counters->strangers == 2, "after the nomination the others do not count");
  }
  {
    World w;
    TestLeg leg(w, 1, {});
    leg.stream->describe(config(signalled, kUlaw), w.now);
    w.run(2000);
    for (uint16_t i = 0; i < 20; ++i) leg.receive(rtp(0, static_cast<uint16_t>(i * 7), 0, 5), nat);
    check::ok(!leg.counters->latched, "packets out of sequence do not latch an unknown sender");
    for (uint16_t i = 0; i < 20; ++i) leg.receive(rtp(77, i, 0, 5), nat);
    check::ok(!leg.counters->latched && leg.counters->unexpected == 20,
              "packets of payload types that were not negotiated do not latch");
  }
  {
    World w;
    Policy p;
    p.signalled_from = address("198.51.100.7", 0);
    TestLeg leg(w, 1, p);
    leg.stream->describe(config(signalled, kUlaw), w.now);
    leg.receive(rtp(0, 1, 0, 5), nat);
    check::ok(leg.counters->latched, "the source address of the SIP is latched at once");
  }
  {
    World w;
    Policy p;
    p.strict = true;
    p.signalled_from = address("198.51.100.7", 0);
    Network n;
    Network::parse("203.0.113.0/24", n);
    p.sources = {n};
    TestLeg leg(w, 1, p);
    leg.stream->describe(config(signalled, kUlaw), w.now);
    w.run(3000);
    for (uint16_t i = 0; i < 10; ++i) leg.receive(rtp(0, i, 0, 5), nat);
    check::ok(!leg.counters->latched && leg.counters->strangers == 10,
              "strict: neither symmetric RTP nor the source of the SIP is accepted");
    leg.receive(rtp(0, 1, 0, 5), stranger);
    check::ok(leg.counters->latched, "strict: a configured source is accepted");
  }
}

/** Two ports of one host send, as in two forks of a call or a telephone with two calls. The SDP names one of them. */
struct TwoPorts {
  World w;
  Address named = address("192.0.2.1", 4000), other = address("192.0.2.1", 5000), third = address("192.0.2.1", 6000);
  TestLeg leg;
  uint16_t seq = 0;
  explicit TwoPorts(Policy policy = {}) : leg(w, 1, std::move(policy)) {
    leg.stream->describe(config(named, kUlaw), w.now);
  }
  /** Reports whether the stream accepts a packet from this address. */
  bool takes(const Address& from) {
    const uint64_t before = leg.counters->packets_received;
    ++seq;
    leg.receive(rtp(0, seq, seq * 160u, from.port), from);
    return leg.counters->packets_received == before + 1;
  }
  std::vector<int64_t> latched_ports() {
    std::vector<int64_t> ports;
    Event e;
    w.events.begin_read();
    while (w.events.pop(e))
      if (e.type == EventType::latched) ports.push_back(e.a);
    return ports;
  }
};

void outranking() {
  {
    TwoPorts t;
    check::ok(t.takes(t.other), "another port of the signalled host is accepted at once");
    t.w.run(1900);
    check::ok(t.takes(t.named), "within 2 s after the SDP the signalled port takes over");
    check::ok(!t.takes(t.other) && !t.takes(t.third) && t.takes(t.named),
              "no other port takes over from the signalled port");
    check::ok(t.latched_ports() == std::vector<int64_t>{5000, 4000}, "each latching is reported");
  }
  {
    TwoPorts t;
    t.takes(t.other);
    check::ok(!t.takes(t.third), "a third port does not take over from an unsignalled one");
    t.w.run(2100);
    check::ok(!t.takes(t.named) && t.takes(t.other), "the signalled port no longer takes over after 2 s");
    check::equal(uint64_t{t.leg.counters->strangers}, uint64_t{2}, "packets of the refused ports count as strangers'");
    t.leg.stream->describe(config(t.named, kUlaw), t.w.now);
    check::ok(!t.takes(t.named), "an SDP with the same address does not restart the 2 s");
  }
  {
    Policy strict;
    strict.strict = true;
    Network n;
    Network::parse("203.0.113.0/24", n);
    strict.sources = {n};
    TwoPorts t(strict);
    check::ok(t.takes(address("203.0.113.9", 7000)) && t.takes(t.named) && !t.takes(address("203.0.113.9", 7000)),
              "strict: the signalled address takes over from a configured source");
  }
  {
    TwoPorts t;
    StreamConfig c = config(t.named, kUlaw);
    c.remote_rtcp = address("192.0.2.1", 4444);
    t.leg.stream->describe(c, t.w.now);
    t.w.run(1100);
    for (int i = 0; i < 3; ++i) t.takes(address("198.51.100.7", 6000));
    check::ok(t.latched_ports() == std::vector<int64_t>{6000}, "a stream latches to a stranger after a second");
    check::ok(t.takes(t.named), "the signalled address takes over from a latched stranger");
    t.w.run(8000);
    check::ok(!t.leg.reports_to.empty() && t.leg.reports_to.back() == c.remote_rtcp,
              "RTCP goes to the address in the SDP after the takeover");
  }
}

void reports_of_strangers() {
  OurReport theirs;
  theirs.ssrc = 5;
  uint8_t report[256];
  const size_t n = write_rtcp(report, theirs, "peer");
  const auto takes = [&](World& w, TestLeg& leg, const Address& from, bool muxed = false) {
    const uint64_t before = leg.counters->rtcp_received;
    w.run(20);
    uint8_t copy[256];
    std::memcpy(copy, report, n);
    leg.stream->on_rtcp(copy, n, from, w.now, muxed);
    return leg.counters->rtcp_received > before;
  };
  const Address named = address("192.0.2.1", 4000), nat = address("203.0.113.9", 6000);
  const auto at = [](Address a, uint16_t port) {
    a.port = port;
    return a;
  };
  {
    World w;
    TestLeg leg(w, 1, {});
    StreamConfig c = config(named, kUlaw);
    c.remote_rtcp = at(named, 4444);
    leg.stream->describe(c, w.now);
    leg.receive(rtp(0, 1, 160, 1), named);
    check::ok(takes(w, leg, c.remote_rtcp) && takes(w, leg, at(named, 4001)) && takes(w, leg, named),
              "RTCP is accepted from the address in the SDP, the RTP port and the port above it");
    check::ok(!takes(w, leg, at(named, 9999)), "RTCP from another port of the host is refused");
    check::ok(!takes(w, leg, c.remote_rtcp, true), "RTCP on the RTP port is accepted only from the source of RTP");
  }
  World w;
  TestLeg leg(w, 1, {});
  leg.stream->describe(config(named, kUlaw), w.now);
  w.run(1100);
  for (uint16_t i = 1; i < 5; ++i) leg.receive(rtp(0, i, i * 160u, 1), nat);
  check::ok(leg.counters->latched && !takes(w, leg, at(named, 4001)),
            "RTCP from an address that was not latched is refused");
  check::ok(takes(w, leg, at(nat, 31000)), "the RTCP port of a peer behind a NAT is learnt");
  check::ok(!takes(w, leg, at(nat, 31002)) && takes(w, leg, at(nat, 31000)), "the learnt RTCP port does not change");
}

/** Limits the STUN and DTLS packets of a browser's leg. */
void raw_shares() {
  World w;
  TestLeg leg(w, 1, {});
  leg.stream->take_raw(true);
  const Address peer = address("192.0.2.1", 4000);
  const auto raw = [&](const Address& from) {
    leg.receive({0, 1, 0, 0}, from);
    return w.count(EventType::raw);
  };
  int stranger = 0;
  for (int i = 0; i < 1000; ++i) stranger += raw(address("198.51.100.7", 5000));
  check::within(stranger, 20, 30, "a stranger's STUN packets are limited");
  int others = 0;
  for (uint16_t i = 0; i < 16; ++i) others += raw(address("203.0.113.1", static_cast<uint16_t>(6000 + i)));
  check::ok(others >= 14, "a flood of one stranger leaves room for others");
  leg.stream->describe(config(peer, kUlaw), w.now);
  for (uint16_t i = 0; i < 1000; ++i) raw(address("198.51.100.7", i));
  int known = 0;
  for (int i = 0; i < 40; ++i) known += raw(peer);
  check::equal(known, 40, "a flood of strangers leaves the peer its own limit");
}

/** A peer whose NAT gives it another address in the middle of a call, and strangers who would like to be it. */
struct Rebinding {
  World w;
  Address named = address("10.0.0.5", 4000), nat = address("198.51.100.7", 6000), after = address("203.0.113.20", 7000),
          stranger = address("192.0.2.66", 8000);
  TestLeg leg;
  std::unique_ptr<SrtpContext> key;
  uint16_t seq = 60'000;
  explicit Rebinding(bool secured, Policy policy = {}) : leg(w, 1, std::move(policy)) {
    StreamConfig c = config(named, kUlaw);
    c.secured = secured;
    if (secured) {
      c.receive_key.assign(30, 1);
      c.send_key.assign(30, 2);
      key = key_of(1);
    }
    leg.stream->describe(c, w.now);
    w.run(1100);
    for (int i = 0; i < 10; ++i) send(nat);
  }
  static std::unique_ptr<SrtpContext> key_of(uint8_t byte) {
    const std::vector<uint8_t> bytes(30, byte);
    return SrtpContext::make(SrtpSuite::aes128_sha1_80, bytes.data(), 30);
  }
  bool takes(std::vector<uint8_t> packet, const Address& from) {
    const uint64_t before = leg.counters->packets_received;
    leg.receive(std::move(packet), from);
    w.run(20);
    return leg.counters->packets_received == before + 1;
  }
  std::vector<uint8_t> packet(uint16_t number, uint32_t ssrc, SrtpContext* with) {
    auto p = rtp(0, number, number * 160u, ssrc);
    if (with == nullptr) return p;
    const size_t n = p.size();
    p.resize(n + kTailRoom);
    p.resize(with->protect(p.data(), n));
    return p;
  }
  /** The peer's next packet. */
  bool send(const Address& from, uint32_t ssrc = 5) { return takes(packet(++seq, ssrc, key.get()), from); }
  /** A packet of somebody without the key. */
  bool tries(uint16_t number, uint32_t ssrc = 5) {
    const auto other = key_of(9);
    return takes(packet(number, ssrc, key ? other.get() : nullptr), stranger);
  }
  bool sends_to(const Address& to) {
    leg.sent_to.clear();
    leg.stream->send_keys({"", "1", 60, 60}, w.now);
    w.run(100);
    return !leg.sent_to.empty() && leg.sent_to.back() == to;
  }
};

void rebinding() {
  {
    Rebinding r(true);
    for (int i = 0; i < 10; ++i) {
      ++r.seq;  // lost on the way
      r.w.run(20);
    }
    check::ok(!r.send(r.after) && !r.send(r.after), "one or two packets from another address move nothing");
    check::ok(r.send(r.after) && r.send(r.after), "a peer whose NAT changes its address in a call is heard again");
    check::ok(r.sends_to(r.after), "it hears us at the new address");
    check::ok(!r.send(r.nat) && !r.send(r.nat) && !r.send(r.nat) && r.send(r.after),
              "its old address is a stranger's from then on");
  }
  for (const bool secured : {false, true}) {
    Rebinding r(secured);
    bool moved = false;
    for (int i = 0; i < 50; ++i) {
      moved |= r.tries(static_cast<uint16_t>(r.seq + 1));
      r.send(r.nat);
    }
    check::ok(!moved && r.sends_to(r.nat), "who repeats or foresees the numbers of a peer that speaks gets nothing");
    r.w.run(5000);
    for (uint16_t i = 0; i < 500; ++i) moved |= r.tries(static_cast<uint16_t>(r.seq + i), 99);
    for (uint16_t i = 0; i < 500; ++i) moved |= r.tries(static_cast<uint16_t>(r.seq - 500 + i));
    for (uint16_t i = 0; i < 500; ++i) moved |= r.tries(static_cast<uint16_t>(r.seq + 1 + i));
    for (uint16_t i = 0; i < 500; ++i) moved |= r.tries(static_cast<uint16_t>(r.seq + 2000 + i));
    check::ok(!moved && r.sends_to(r.nat),
              "who has heard the stream does not get it when the peer is silent, without its key");
    check::ok(r.send(r.nat), "the peer goes on where it was");
  }
  {
    Rebinding r(false);
    const Address port = address("198.51.100.7", 6100);
    r.w.run(3000);
    bool moved = false;
    for (int i = 0; i < 10; ++i) moved |= r.send(port);
    check::ok(!moved, "without SRTP, a stream that goes on at another address is a stranger's");
    for (int i = 0; i < 10; ++i) moved |= r.send(port, 77);
    check::ok(!moved, "another stream from the peer's host is one, too");
    r.leg.stream->describe(config(r.named, kUlaw), r.w.now);
    r.w.run(300);
    for (int i = 0; i < 10; ++i) moved |= r.send(port, 77);
    check::ok(!moved, "also after a session refresh");
    StreamConfig hold = config(r.named, kUlaw);
    hold.may_send = hold.may_receive = false;
    r.leg.stream->describe(hold, r.w.now);
    r.w.run(60'000);
    r.leg.stream->describe(config(r.named, kUlaw), r.w.now);
    for (int i = 0; i < 10; ++i) moved |= r.send(r.stranger, 78);
    check::ok(!moved, "after a hold a stranger does not take the peer's place");
    for (int i = 0; i < 10; ++i) moved |= r.send(port, 77);
    check::ok(moved && r.sends_to(port), "after a hold the peer may come back with a new stream from another port");
  }
  {
    Policy strict;
    strict.strict = true;
    Network n;
    Network::parse("198.51.100.0/24", n);
    strict.sources = {n};
    Rebinding r(true, strict);
    r.w.run(300);
    bool moved = false;
    for (int i = 0; i < 10; ++i) moved |= r.send(r.after);
    check::ok(!moved, "strict: no move to an address outside of the sources");
    const Address within = address("198.51.100.9", 6000);
    for (int i = 0; i < 10; ++i) moved |= r.send(within);
    check::ok(moved, "strict: a move within the sources");
  }
  {
    Rebinding r(true);
    const std::vector<Network> denied{{address("203.0.113.0", 0), 24}};
    r.w.context.denied = &denied;
    r.w.run(300);
    bool moved = false;
    for (int i = 0; i < 10; ++i) moved |= r.send(r.after);
    check::ok(!moved, "no move to a denied network");
  }
  {
    Rebinding r(true);
    r.leg.stream->take_raw(true);
    r.w.run(300);
    bool moved = false;
    for (int i = 0; i < 10; ++i) moved |= r.send(r.after);
    check::ok(!moved, "a browser's stream moves by ICE alone");
  }
}

/** The hold of RFC 2543: an SDP with c=0.0.0.0 takes the peer's address away, but no other peer comes in its place. */
void held_by_address() {
  Rebinding r(false);
  r.w.run(10'000);
  StreamConfig hold = config(Address{}, kUlaw);
  hold.remote_rtcp = Address{};
  hold.may_send = false;
  r.leg.stream->describe(hold, r.w.now);
  r.leg.sent.clear();
  r.leg.reports.clear();
  bool heard = true, moved = false;
  for (int i = 0; i < 10; ++i) heard &= r.send(r.nat);
  check::ok(heard, "the holder's music is taken from where its audio came from");
  for (int i = 0; i < 500; ++i) moved |= r.send(r.stranger, 78);
  check::ok(!moved, "a stranger does not become the holder");
  r.leg.stream->send_keys({"", "1", 60, 60}, r.w.now);
  r.w.run(20'000);
  check::ok(r.leg.sent.empty() && r.leg.reports.empty(), "the holder gets neither RTP nor RTCP (RFC 3264 §8.4)");
  r.leg.stream->describe(config(r.named, kUlaw), r.w.now);
  check::ok(r.send(r.nat) && r.sends_to(r.nat), "after the hold both hear each other where they were");
  r.leg.stream->describe(hold, r.w.now);
  const std::vector<Network> denied{{address("203.0.113.0", 0), 24}};
  r.w.context.denied = &denied;
  r.leg.stream->describe(config(r.after, kUlaw), r.w.now);
  check::ok(!r.send(r.nat), "an address that is denied ends what was latched");
}

void outranking_secured() {
  TwoPorts t;
  StreamConfig c = config(t.named, kUlaw);
  c.secured = true;
  c.receive_key.assign(30, 1);
  c.send_key.assign(30, 2);
  t.leg.stream->describe(c, t.w.now);
  const auto send = [&](const Address& from, uint8_t key) {
    const std::vector<uint8_t> bytes(30, key);
    auto p = rtp(0, 1, 160, from.port);
    p.resize(p.size() + kTailRoom);
    p.resize(SrtpContext::make(SrtpSuite::aes128_sha1_80, bytes.data(), 30)->protect(p.data(), kRtpHeader + 160));
    t.leg.receive(p, from);
  };
  send(t.other, 1);
  send(t.named, 9);
  check::ok(t.latched_ports() == std::vector<int64_t>{5000} && t.leg.counters->srtp_auth_failed == 1,
            "SRTP: a packet that fails authentication does not take over");
  send(t.named, 1);
  check::ok(t.latched_ports() == std::vector<int64_t>{4000},
            "SRTP: an authenticated packet of the signalled address takes over");
}

}  // namespace

void latching_tests() {
  latching();
  outranking();
  reports_of_strangers();
  raw_shares();
  outranking_secured();
  rebinding();
  held_by_address();
}
