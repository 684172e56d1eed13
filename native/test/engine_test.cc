// The whole engine with its threads and real sockets, without Node. ThreadSanitizer runs these tests too.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
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
  Phone() { come_back(0); }
  void come_back() { come_back(port); }
  void leave() { ::close(fd); }
  void come_back(uint16_t on) {
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    Address a;
    Address::parse("127.0.0.1", on, a);
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

int open_files() {
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) n += !entry.path().empty();
  return n;
}

/** Calls that end, move and are flooded while packets are in flight. */
void restless_calls(bool io_uring) {
  const std::string how = io_uring ? " (io_uring)" : " (epoll)";
  const int files = open_files();
  {
    EngineOptions o;
    Address::parse("127.0.0.1", 0, o.bind);
    o.quarantine_ms = 0;
    o.worker.io_uring = io_uring;
    Engine engine(o);
    Phone near, far, moved;
    const uint32_t session = engine.open_session();
    Engine::Opened a, b;
    check::ok(engine.open_stream(session, {}, a) && engine.open_stream(session, {}, b), "a call opens" + how);
    engine.describe(a.id, settled(near.port));
    engine.describe(b.id, settled(far.port));
    engine.bridge(a.id, b.id);
    const auto heard = [&](Phone& phone, Phone& ear, uint16_t to) {
      for (int i = 0; i < check::kPatience; ++i) {
        phone.send(to);
        if (ear.drain() > 0) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      return false;
    };
    check::ok(heard(near, far, a.rtp_port) && heard(far, near, b.rtp_port), "both parties hear each other" + how);
    // Many short concurrent calls, each with packets in flight when it ends.
    for (int round = 0; round < 40; ++round) {
      Phone p, q;
      const uint32_t other = engine.open_session();
      Engine::Opened x, y;
      engine.open_stream(other, {}, x);
      engine.open_stream(other, {}, y);
      engine.describe(x.id, settled(p.port));
      engine.describe(y.id, settled(q.port));
      engine.bridge(x.id, y.id);
      for (int i = 0; i < 8; ++i) {
        p.send(x.rtp_port);
        q.send(y.rtp_port);
        if (i % 4 == 3) std::this_thread::sleep_for(std::chrono::microseconds(700));
      }
      engine.close_stream(x.id);
      engine.close_stream(y.id);
      engine.close_session(other);
    }
    check::ok(heard(near, far, a.rtp_port), "concurrent calls that end do not affect the call" + how);
    // A flood from the peer is policed; the other direction still works.
    const auto policed = [&] { return uint64_t{engine.counters(a.id)->policed}; };
    for (int i = 0; i < 20'000 && policed() < 500; ++i) {
      for (int n = 0; n < 40; ++n) near.send(a.rtp_port);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    check::ok(policed() >= 500, "a flood is policed" + how);
    near.drain();
    check::ok(heard(far, near, b.rtp_port), "audio reaches the flooding peer" + how);
    engine.describe(b.id, settled(moved.port));
    check::ok(heard(moved, near, b.rtp_port), "a party is heard from its new port" + how);
    check::ok(heard(near, moved, a.rtp_port), "a party that moved hears the peer, after its flood" + how);
    // ICMP errors from a closed port do not end the stream. A party that returns to the same port is heard.
    moved.leave();
    for (int i = 0; i < 50; ++i) near.send(a.rtp_port);
    moved.come_back();
    check::ok(heard(moved, near, b.rtp_port) && heard(near, moved, a.rtp_port), "a call survives ICMP errors" + how);
    engine.close();
    check::equal(engine.ports().counts(mono_us()).in_use, size_t{0}, "close releases every pair of ports" + how);
  }
  check::equal(open_files(), files, "close leaves no descriptor open" + how);
}

/** Two ports of one host send all the time. The stream latches to the first sender; the port in the SDP takes over. */
void two_ports(bool io_uring) {
  const std::string how = io_uring ? " (io_uring)" : " (epoll)";
  EngineOptions o;
  Address::parse("127.0.0.1", 0, o.bind);
  o.worker.io_uring = io_uring;
  Engine engine(o);
  Phone named, other, far;
  const uint32_t session = engine.open_session();
  Engine::Opened a, b;
  engine.open_stream(session, {}, a);
  engine.open_stream(session, {}, b);
  engine.describe(a.id, settled(named.port));
  engine.describe(b.id, settled(far.port));
  engine.bridge(a.id, b.id);
  const auto counters = engine.counters(a.id);
  for (int i = 0; i < check::kPatience && !counters->latched; ++i) {
    other.send(a.rtp_port);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto hears = [&](Phone& phone) {
    for (int i = 0; i < check::kPatience; ++i) {
      other.send(a.rtp_port);
      named.send(a.rtp_port);
      far.send(b.rtp_port);
      if (phone.drain() > 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  };
  check::ok(hears(named), "the port in the SDP takes over from one that sent first" + how);
  const uint64_t changes = counters->ssrc_changes;
  far.drain();
  other.drain();
  for (int i = 0; i < 100; ++i) {
    hears(named);
    other.send(a.rtp_port);
  }
  check::ok(other.drain() == 0 && counters->ssrc_changes == changes,
            "the port in the SDP keeps the stream, and packets of the other port do not pass" + how);
}

void busy_engine(bool io_uring) {
  EngineOptions o;
  o.threads = 3;
  o.worker.io_uring = io_uring;
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
  check::equal(opened, kCalls, "calls open on three threads");
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
  const auto hearing = [&] {
    int n = 0;
    for (const auto& c : calls) n += c->heard > 60;
    return n;
  };
  for (int tick = 0; tick < 100 || (tick < check::kPatience && (hearing() < kCalls || latched < 2 * kCalls)); ++tick) {
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
  check::ok(received > 0 && latched == 2 * kCalls, "every leg latches");
  check::equal(hearing(), kCalls, "every call carries audio");
  check::ok(woken > 0, "events wake the consumer");
  for (auto& c : calls) {
    engine.close_stream(c->a.id);
    engine.close_stream(c->b.id);
    engine.close_session(c->session);
  }
  for (int i = 0; i < check::kPatience && ended < kCalls * 3 / 4; ++i) {
    take_events();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  check::equal(ended, kCalls * 3 / 4, "every recording reports its end");
  engine.close();
  check::equal(engine.ports().counts(mono_us()).in_use, size_t{0},
               "close releases every pair of ports of three threads");
  for (int i = 0; i < kCalls; ++i) unlink((std::string(folder) + "/" + std::to_string(i) + ".wav").c_str());
  rmdir(folder);
}

}  // namespace

void engine_tests() {
  for (const bool io_uring : {true, false}) {
    busy_engine(io_uring);
    restless_calls(io_uring);
    two_ports(io_uring);
  }
}
