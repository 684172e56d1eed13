// Streams with a simulated clock and wire, for tests that feed packets in and inspect the packets sent.
#pragma once
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../src/core/bytes.h"
#include "../src/core/stream.h"

namespace legs {

using namespace media;

inline Address address(const char* ip, uint16_t port) {
  Address a;
  Address::parse(ip, port, a);
  return a;
}

struct World;

struct TestLeg final : Wire {
  TestLeg(World& w, uint32_t id, Policy policy);
  bool send_rtp(const uint8_t* p, size_t n, const Address& to) override {
    sent.emplace_back(p, p + n);
    sent_to.push_back(to);
    return true;
  }
  bool send_rtcp(const uint8_t* p, size_t n, const Address& to) override {
    reports.emplace_back(p, p + n);
    reports_to.push_back(to);
    return true;
  }
  void receive(const std::vector<uint8_t>& packet, const Address& from);

  World& world;
  std::vector<std::vector<uint8_t>> sent, reports;
  std::vector<Address> sent_to, reports_to;
  std::shared_ptr<StreamCounters> counters = std::make_shared<StreamCounters>();
  std::unique_ptr<Stream> stream;
};

struct World {
  uint64_t now = 10'000'000;
  TimerWheel wheel{10'000'000};
  EventQueue events{1024};
  ThreadContext context{wheel, events};
  void run(uint64_t ms) {
    for (uint64_t i = 0; i < ms; ++i) wheel.advance(now += 1000);
  }
  int count(EventType type) {
    int n = 0;
    Event e;
    events.begin_read();
    while (events.pop(e))
      if (e.type == type) ++n;
    return n;
  }
};

inline TestLeg::TestLeg(World& w, uint32_t id, Policy policy) : world(w) {
  stream = std::make_unique<Stream>(id, std::move(policy), w.context, *this, counters, "test", w.now);
}
inline void TestLeg::receive(const std::vector<uint8_t>& packet, const Address& from) {
  std::vector<uint8_t> room(packet.size() + kTailRoom);
  std::memcpy(room.data(), packet.data(), packet.size());
  stream->on_rtp(room.data(), packet.size(), from, world.now);
}

inline PayloadFacts payload(uint8_t pt, const char* name, CodecId codec, uint32_t clock,
                     PayloadKind kind = PayloadKind::audio) {
  PayloadFacts f;
  f.kind = kind;
  f.payload_type = pt;
  f.codec = codec;
  f.name = intern(name);
  f.clock_rate = clock;
  return f;
}

inline StreamConfig config(const Address& remote, const PayloadFacts& audio) {
  StreamConfig c;
  c.remote_rtp = c.remote_rtcp = remote;
  ++c.remote_rtcp.port;
  c.may_send = c.may_receive = true;
  c.receive = {audio, payload(101, "TELEPHONE-EVENT", CodecId::other, 8000, PayloadKind::telephone_event)};
  c.sends = true;
  c.send = audio;
  c.sends_events = true;
  c.event = c.receive[1];
  return c;
}

inline const PayloadFacts kUlaw = payload(0, "PCMU", CodecId::pcmu, 8000), kAlaw = payload(8, "PCMA", CodecId::pcma, 8000);
inline const PayloadFacts kG722Audio = payload(9, "G722", CodecId::g722, 8000), kG729Audio = payload(18, "G729", CodecId::g729, 8000),
                          kOpusAudio = payload(96, "OPUS", CodecId::opus, 48000);

inline std::vector<uint8_t> rtp(uint8_t pt, uint16_t seq, uint32_t ts, uint32_t ssrc, size_t bytes = 160) {
  std::vector<uint8_t> p(kRtpHeader + bytes, 0x55);
  write_rtp_header(p.data(), pt, false, seq, ts, ssrc);
  return p;
}

inline uint16_t seq_of(const std::vector<uint8_t>& p) {
  return get16(p.data() + 2);
}
inline uint32_t ts_of(const std::vector<uint8_t>& p) {
  return get32(p.data() + 4);
}

struct Pair {
  World w;
  TestLeg a{w, 1, {}}, b{w, 2, {}};
  Address ra = address("192.0.2.1", 4000), rb = address("192.0.2.2", 5000);
  Pair(const PayloadFacts& fa, const PayloadFacts& fb) {
    a.stream->describe(config(ra, fa), w.now);
    b.stream->describe(config(rb, fb), w.now);
    a.stream->send_to(b.stream.get(), w.now);
    b.stream->send_to(a.stream.get(), w.now);
  }
};

/** Reports whether the packets have consecutive sequence numbers and one SSRC. */
inline bool continuous(const std::vector<std::vector<uint8_t>>& sent, size_t from = 1) {
  for (size_t i = from; i < sent.size(); ++i)
    if (static_cast<uint16_t>(seq_of(sent[i]) - seq_of(sent[i - 1])) != 1 ||
        get32(sent[i].data() + 8) != get32(sent[0].data() + 8))
      return false;
  return true;
}

}  // namespace legs
