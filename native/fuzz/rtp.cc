// Fuzzes RTP from a stranger and from the peer on a stream that transcodes, records, detects and relays.
#include <cstring>
#include <memory>
#include <vector>

#include "../src/core/stream.h"

using namespace media;

namespace {

struct Nowhere final : Wire {
  bool send_rtp(const uint8_t* p, size_t n, const Address&) override {
    RtpView v;
    if (!parse_rtp(p, n, v)) __builtin_trap();  // sent packets are always well-formed
    return true;
  }
  bool send_rtcp(const uint8_t*, size_t, const Address&) override { return true; }
};

struct World {
  TimerWheel wheel;
  EventQueue events{256};
  ThreadContext context{wheel, events};
  Nowhere wire;
  Stream a{1, {}, context, wire, std::make_shared<StreamCounters>(), "a", 0};
  Stream b{2, {}, context, wire, std::make_shared<StreamCounters>(), "b", 0};
  Address peer, stranger;
  uint64_t now = 0;
  World() {
    open_g729(true);
    Address::parse("192.0.2.1", 4000, peer);
    Address::parse("203.0.113.1", 4000, stranger);
    StreamConfig c;
    c.remote_rtp = c.remote_rtcp = peer;
    c.rtcp_mux = c.may_send = c.may_receive = c.sends = c.sends_events = true;
    const auto add = [&](uint8_t pt, const char* name, CodecId id, uint32_t clock, PayloadKind kind) {
      PayloadFacts f;
      f.kind = kind;
      f.payload_type = pt;
      f.codec = id;
      f.name = intern(name);
      f.clock_rate = clock;
      c.receive.push_back(f);
      return f;
    };
    c.send = add(0, "PCMU", CodecId::pcmu, 8000, PayloadKind::audio);
    add(8, "PCMA", CodecId::pcma, 8000, PayloadKind::audio);
    add(9, "G722", CodecId::g722, 8000, PayloadKind::audio);
    add(18, "G729", CodecId::g729, 8000, PayloadKind::audio);
    add(96, "OPUS", CodecId::opus, 48000, PayloadKind::audio);
    add(13, "CN", CodecId::other, 8000, PayloadKind::comfort_noise);
    c.event = add(101, "TELEPHONE-EVENT", CodecId::other, 8000, PayloadKind::telephone_event);
    a.describe(c, 0);
    b.describe(c, 0);
    a.send_to(&b, 0);
    b.send_to(&a, 0);
    a.detect(true, true, true, 0);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World w;
  static unsigned round = 0;
  if (size > 2048) return 0;
  std::vector<uint8_t> room(size + kTailRoom);
  if (size) std::memcpy(room.data(), data, size);
  w.now += 20'000;
  w.a.on_rtp(room.data(), size, ++round % 8 ? w.peer : w.stranger, w.now);
  w.wheel.advance(w.now);
  Event e;
  w.events.begin_read();
  while (w.events.pop(e)) {
  }
  return 0;
}
