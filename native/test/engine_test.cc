// The whole engine with its threads and real sockets, without Node: what ThreadSanitizer is to look at.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "../src/core/clock.h"
#include "../src/core/engine.h"
#include "check.h"

using namespace media;

namespace {

struct Phone {
  int fd;
  uint16_t port;
  uint16_t seq = 0;
  Phone() : fd(socket(AF_INET, SOCK_DGRAM, 0)) {
    Address a;
    Address::parse("127.0.0.1", 0, a);
    sockaddr_in6 sa;
    bind(fd, reinterpret_cast<sockaddr*>(&sa), a.to(sa));
    socklen_t n = sizeof sa;
    getsockname(fd, reinterpret_cast<sockaddr*>(&sa), &n);
    port = Address::from(reinterpret_cast<sockaddr*>(&sa)).port;
  }
  ~Phone() { ::close(fd); }
  void send(uint16_t to) {
    uint8_t p[172] = {};
    write_rtp_header(p, 0, false, seq, seq * 160u, port);
    ++seq;
    Address a;
    Address::parse("127.0.0.1", to, a);
    sockaddr_in6 sa;
    const socklen_t n = a.to(sa);
    sendto(fd, p, sizeof p, 0, reinterpret_cast<sockaddr*>(&sa), n);
  }
  int drain() {
    uint8_t p[2048];
    int n = 0;
    while (recv(fd, p, sizeof p, MSG_DONTWAIT) > 0) ++n;
    return n;
  }
};

StreamConfig settled(uint16_t port) {
  StreamConfig c;
  Address::parse("127.0.0.1", port, c.remote_rtp);
  c.remote_rtcp = c.remote_rtp;
  ++c.remote_rtcp.port;
  c.may_send = c.may_receive = c.sends = true;
  PayloadFacts f;
  f.kind = PayloadKind::audio;
  f.codec = CodecId::pcmu;
  f.name = intern("PCMU");
  c.receive = {f};
  c.send = f;
  return c;
}

}  // namespace

void engine_tests() {
  EngineOptions o;
  o.threads = 3;
  Address::parse("127.0.0.1", 0, o.bind);
  o.quarantine_ms = 0;
  Engine engine(o);
  std::atomic<int> woken{0};
  engine.events().on_wake([&] { ++woken; });
  char folder[] = "/tmp/engine-XXXXXX";
  if (!mkdtemp(folder)) return;
  constexpr int kCalls = 12;
  struct Call {
    uint32_t session;
    Engine::Opened a, b;
    Phone pa, pb;
    int heard = 0;
  };
  std::vector<std::unique_ptr<Call>> calls;
  const uint32_t conference = engine.open_conference(8000);
  int opened = 0;
  for (int i = 0; i < kCalls; ++i) {
    auto c = std::make_unique<Call>();
    c->session = engine.open_session();
    opened += engine.open_stream(c->session, {}, c->a) && engine.open_stream(c->session, {}, c->b);
    engine.describe(c->a.id, settled(c->pa.port));
    engine.describe(c->b.id, settled(c->pb.port));
    if (i % 4 == 3) {
      engine.join(conference, c->a.id, false, false);
      engine.join(conference, c->b.id, false, false);
    } else {
      engine.bridge(c->a.id, c->b.id);
      RecordRequest r;
      r.config.id = "r" + std::to_string(i);
      r.config.file = std::string(folder) + "/" + std::to_string(i) + ".wav";
      r.config.channels = 2;
      r.left = c->a.id;
      r.right = c->b.id;
      engine.record(r);
    }
    calls.push_back(std::move(c));
  }
  check::equal(opened, kCalls, "pairs are opened on three threads");
  int ended = 0, latched = 0;
  const auto take_events = [&] {
    engine.events().begin_read();
    Event e;
    while (engine.events().pop(e)) {
      if (e.type == EventType::record_ended) {
        ++ended;
        engine.forget_record(e.id);
      }
      if (e.type == EventType::latched) ++latched;
    }
  };
  uint64_t received = 0;
  for (int tick = 0; tick < 100; ++tick) {
    for (auto& c : calls) {
      c->pa.send(c->a.rtp_port);
      c->pb.send(c->b.rtp_port);
      c->heard += c->pa.drain() + c->pb.drain();
      received += engine.counters(c->a.id)->packets_received;
    }
    if (tick == 50) engine.with(calls[0]->a.id, [](Stream& s, uint64_t now) { s.detect(true, true, true, now); });
    if (tick == 60) engine.stop_record("r0");
    take_events();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  check::ok(received > 0 && latched == 2 * kCalls, "every leg is latched");
  int hearing = 0;
  for (auto& c : calls) hearing += c->heard > 60;
  check::equal(hearing, kCalls, "every call carries audio");
  check::ok(woken > 0, "the consumer is woken");
  for (auto& c : calls) {
    engine.close_stream(c->a.id);
    engine.close_stream(c->b.id);
    engine.close_session(c->session);
  }
  for (int i = 0; i < 500 && ended < kCalls * 3 / 4; ++i) {
    take_events();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  check::equal(ended, kCalls * 3 / 4, "every recording has its end");
  engine.close();
  check::equal(engine.ports().counts(mono_us()).in_use, size_t{0}, "every pair of ports is given back");
  for (int i = 0; i < kCalls; ++i) unlink((std::string(folder) + "/" + std::to_string(i) + ".wav").c_str());
  rmdir(folder);
}
