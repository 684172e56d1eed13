// Streams on the packet ring: the ring delivers exactly what the socket would, and streams return to the socket. Also
// stalls of the packet thread, for each way of receiving. Uses real packets over loopback. Where raw sockets are
// forbidden, the sockets deliver them.
#include "../src/core/packet_ring.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "../src/core/bytes.h"
#include "../src/core/clock.h"
#include "../src/core/datagram.h"
#include "../src/core/engine.h"
#include "check.h"
#include "legs.h"

using namespace media;

namespace {

bool allowed_here() {
  const int fd = PacketRing::reserve();
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

struct RingPhone {
  int fd = -1;
  Address own;
  uint16_t seq = 0, heard = 0;
  size_t got = 0, wrong = 0;
  bool any = false;

  RingPhone() : fd(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    Address::parse("127.0.0.1", 0, own);
    sockaddr_in6 sa;
    bind(fd, reinterpret_cast<sockaddr*>(&sa), own.to(sa));
    socklen_t n = sizeof sa;
    getsockname(fd, reinterpret_cast<sockaddr*>(&sa), &n);
    own.port = Address::from(reinterpret_cast<sockaddr*>(&sa)).port;
    const int room = 4 << 20;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  }
  RingPhone(const RingPhone&) = delete;
  ~RingPhone() { ::close(fd); }

  /** Sends a packet whose payload repeats its number, so that the other end can check it. */
  void send(uint16_t to, size_t payload = 160) {
    std::vector<uint8_t> p(kRtpHeader + payload, static_cast<uint8_t>(seq));
    write_rtp_header(p.data(), 0, false, seq, seq * 160u, own.port);
    put16(p.data() + kRtpHeader, seq++);
    send(to, p);
  }
  void send(uint16_t to, const std::vector<uint8_t>& packet) const {
    Address a = own;
    a.port = to;
    sockaddr_in6 sa;
    const socklen_t n = a.to(sa);
    sendto(fd, packet.data(), packet.size(), 0, reinterpret_cast<sockaddr*>(&sa), n);
  }
  /** Adds no-operation IP options to later packets, or removes them (RFC 791 §3.1). */
  void options(bool any) const {
    const uint8_t nothing[4] = {1, 1, 1, 1};
    setsockopt(fd, IPPROTO_IP, IP_OPTIONS, nothing, any ? sizeof nothing : 0);
  }
  /** Counts received packets. Each must have the next number and an unchanged payload. */
  void hear() {
    uint8_t p[2048];
    for (ssize_t n; (n = recv(fd, p, sizeof p, 0)) > 0;) {
      const uint16_t seq_in = get16(p + 2), told = get16(p + kRtpHeader);
      bool right = seq_in == told && (!any || static_cast<uint16_t>(heard + 1) == seq_in);
      for (ssize_t i = kRtpHeader + 2; right && i < n; ++i) right = p[i] == static_cast<uint8_t>(told);
      wrong += !right;
      heard = seq_in;
      any = true;
      ++got;
    }
  }
};

/** Packets that a socket has room for, and some to spare. */
constexpr size_t kAhead = 100;

struct Call {
  Engine engine;
  RingPhone near, far;
  Engine::Opened a, b;
  uint32_t session;

  static EngineOptions options(bool io_uring, int threads, bool packet_ring) {
    EngineOptions o;
    Address::parse("127.0.0.1", 0, o.bind);
    o.quarantine_ms = 0;
    o.threads = threads;
    o.worker.io_uring = io_uring;
    o.worker.packet_ring = packet_ring;
    return o;
  }
  explicit Call(bool io_uring, int threads = 1, bool packet_ring = true)
      : engine(options(io_uring, threads, packet_ring)), session(engine.open_session()) {
    engine.open_stream(session, {}, a);
    engine.open_stream(session, {}, b);
    engine.describe(a.id, of(near));
    engine.describe(b.id, of(far));
    engine.bridge(a.id, b.id);
  }
  static StreamConfig of(const RingPhone& phone) {
    StreamConfig c = legs::config(phone.own, legs::kUlaw);
    c.ptime_ms = 1;  // allows a rate at which nothing is policed
    return c;
  }
  /**
   * Sends in both directions, below the rate of a flood, until `holds` returns true. Sends no further ahead of what was
   * heard than a socket has room for, so that a worker that stands still loses nothing.
   */
  bool talk_until(const std::function<bool()>& holds, size_t payload = 160) {
    for (int i = 0; i < check::kPatience && !holds(); ++i) {
      if (near.seq < far.got + kAhead) near.send(a.rtp_port, payload);
      if (far.seq < near.got + kAhead) far.send(b.rtp_port, payload);
      rest();
    }
    return holds();
  }
  void rest() {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    near.hear();
    far.hear();
  }
  bool hears(RingPhone& phone, size_t packets) {
    for (int i = 0; i < check::kPatience && phone.got < packets; ++i) rest();
    return phone.got == packets;
  }
  int64_t on_ring() const {
    int64_t n = 0;
    for (const auto& w : engine.workers()) n += w->counters().packet_ring_streams;
    return n;
  }
};

void changing_over(bool io_uring, bool allowed) {
  const std::string how = io_uring ? " (io_uring)" : " (epoll)";
  Call c(io_uring);
  const auto counters = c.engine.counters(c.a.id);
  check::ok(c.engine.workers()[0]->packet_ring() == allowed, "a worker has a packet ring where it is allowed" + how);
  const int64_t both = allowed ? 2 : 0;
  check::ok(c.talk_until([&] { return c.far.seq >= 50 && c.on_ring() == both; }),
            "both streams enter the packet ring after a while" + how);
  c.talk_until([&, from = c.far.seq] { return c.far.seq >= from + 200; });
  const bool all = c.hears(c.far, c.near.seq) && c.hears(c.near, c.far.seq);
  check::ok(all && c.far.wrong == 0 && c.near.wrong == 0,
            "entering loses, repeats, reorders and changes no packet" + how);
  check::equal(uint64_t{counters->duplicate}, uint64_t{0}, "no packet comes from both ring and socket" + how);
  // The socket delivers a packet that does not fit a frame, and the packets after it.
  for (int i = 0; i < 100; ++i) {
    c.near.send(c.a.rtp_port, i % 7 == 6 ? 1000 : 160);
    c.far.options(i % 9 == 8);
    c.far.send(c.b.rtp_port);
    c.rest();
    if (i != 50) continue;
    for (int turn = 0; turn < check::kPatience && c.on_ring() > 0; ++turn) c.rest();
    check::equal(c.on_ring(), int64_t{0}, "a stream leaves the ring after packets that it cannot carry" + how);
  }
  check::ok(c.hears(c.far, c.near.seq) && c.hears(c.near, c.far.seq) && c.far.wrong == 0 && c.near.wrong == 0,
            "large packets and packets with IP options arrive in order" + how);
  const bool again = c.talk_until([&, from = c.far.seq] { return c.far.seq >= from + 20 && c.on_ring() == both; });
  check::ok(again && c.hears(c.far, c.near.seq) && c.far.wrong == 0,
            "a stream that left enters again without loss" + how);
  check::equal(uint64_t{counters->duplicate}, uint64_t{0}, "leaving and entering again repeats no packet" + how);
  // A stranger sends to a port on the ring.
  RingPhone stranger;
  for (int i = 0; i < check::kPatience && counters->strangers < 5; ++i) {
    stranger.send(c.a.rtp_port);
    c.rest();
  }
  check::ok(counters->strangers >= 5 && c.far.got == c.near.seq,
            "a stranger's packets are counted and not relayed" + how);
  // After silence the socket delivers the first packet.
  for (int i = 0; i < check::kPatience && c.on_ring() > 0; ++i) c.rest();
  check::equal(c.on_ring(), int64_t{0}, "a silent stream leaves the ring" + how);
  check::ok(c.talk_until([&] { return c.on_ring() == both; }) && c.hears(c.far, c.near.seq) && c.far.wrong == 0,
            "a stream enters again after silence without loss" + how);
  // The peer moves, and packets from its old address are ignored.
  RingPhone moved;
  c.engine.describe(c.b.id, Call::of(moved));
  const int64_t one = allowed ? 1 : 0;
  for (int i = 0; i < check::kPatience && (c.near.got < c.far.seq + 20u || c.on_ring() != one); ++i) {
    moved.send(c.b.rtp_port);
    c.rest();
  }
  check::equal(c.on_ring(), one, "a stream with a new peer address enters again, while the silent one does not" + how);
  const size_t heard = c.near.got;
  for (int i = 0; i < 20; ++i) c.far.send(c.b.rtp_port);
  for (int i = 0; i < 20; ++i) c.rest();
  check::ok(c.near.got == heard && heard >= c.far.seq, "a moved peer is heard only from its new address" + how);
  // Close the streams while frames wait.
  for (int i = 0; i < 50; ++i) moved.send(c.b.rtp_port);
  c.engine.close_stream(c.a.id);
  c.engine.close_stream(c.b.id);
  c.engine.close();
  check::equal(c.on_ring(), int64_t{0}, "a closed stream leaves the ring" + how);
}

void two_threads(bool allowed) {
  Call c(true, 2);
  const uint32_t second = c.engine.open_session();
  Engine::Opened x, y;
  c.engine.open_stream(second, {}, x);
  c.engine.open_stream(second, {}, y);
  RingPhone p, q;
  c.engine.describe(x.id, Call::of(p));
  c.engine.describe(y.id, Call::of(q));
  c.engine.bridge(x.id, y.id);
  const auto each = [&](int64_t n) {
    for (const auto& w : c.engine.workers())
      if (w->counters().packet_ring_streams != n) return false;
    return true;
  };
  for (int i = 0; i < check::kPatience && !(p.seq > 100 && each(allowed ? 2 : 0)); ++i) {
    if (p.seq < q.got + kAhead) p.send(x.rtp_port);
    if (q.seq < p.got + kAhead) q.send(y.rtp_port);
    if (c.near.seq < c.far.got + kAhead) c.near.send(c.a.rtp_port);
    if (c.far.seq < c.near.got + kAhead) c.far.send(c.b.rtp_port);
    c.rest();
    p.hear();
    q.hear();
  }
  check::ok(each(allowed ? 2 : 0), "two threads have a packet ring each");
  for (int i = 0; i < check::kPatience && q.got < p.seq; ++i) {
    c.rest();
    q.hear();
  }
  check::ok(q.got == p.seq && q.wrong == 0 && c.hears(c.far, c.near.seq) && c.far.wrong == 0,
            "each ring delivers its own thread's packets");
}

void switched_off() {
  Call c(true, 1, false);
  c.talk_until([&] { return c.far.seq >= 50; });
  check::ok(!c.engine.workers()[0]->packet_ring() && c.on_ring() == 0 && c.hears(c.far, c.near.seq),
            "the sockets deliver all packets when the packet ring is disabled");
}

/** A key as some gateways write it: each packet has its own time (RFC 4733 §2.3.5 forbids it). */
std::vector<std::vector<uint8_t>> pressed(RingPhone& phone, uint8_t event, int packets) {
  std::vector<std::vector<uint8_t>> out;
  for (int i = 0; i < packets; ++i) {
    out.push_back(legs::rtp(101, phone.seq, phone.seq * 160u, phone.own.port, 4));
    ++phone.seq;
    write_telephone_event(out.back().data() + kRtpHeader,
                          {event, i == packets - 1, 10, static_cast<uint16_t>(160 * (i + 1))});
  }
  return out;
}

/** The packet thread reads the first packet of a key, and then stands still while the others come. The next timer is
 * due by then. The stall begins at the worst moment: after the thread has read the sockets, before its timers. */
void standing_still(bool io_uring, bool packet_ring, bool allowed) {
  const std::string how = std::string(io_uring ? " (io_uring" : " (epoll") + (packet_ring ? ", packet ring)" : ")");
  Timer timer;
  std::atomic<bool> armed{false};
  std::function<void(Stream&, uint64_t)> stand;
  Call c(io_uring, 1, packet_ring);
  // The thread itself calls this while it reads the packet that completes the first key.
  c.engine.events().on_wake([&] {
    if (armed.exchange(false)) c.engine.with(c.a.id, stand);
  });
  c.engine.with(c.a.id, [](Stream&, uint64_t) {});  // a command hands the function to the thread
  const int64_t both = packet_ring && allowed ? 2 : 0;
  c.talk_until([&] { return c.near.seq >= 50 && c.on_ring() == both; });
  c.hears(c.far, c.near.seq);
  const auto send = [&](const std::vector<uint8_t>& packet) { c.near.send(c.a.rtp_port, packet); };
  const auto first = pressed(c.near, 5, 1), second = pressed(c.near, 6, 10), third = pressed(c.near, 7, 1);
  stand = [&](Stream& s, uint64_t now) {
    std::vector<uint8_t> begin = second[0];
    begin.resize(begin.size() + kTailRoom);
    s.on_rtp(begin.data(), second[0].size(), c.near.own, now);
    std::for_each(second.begin() + 1, second.end(), send);
    timer.bind([](void* p, uint64_t at) { static_cast<Stream*>(p)->receiver().second_tick(at); }, &s);
    s.context().wheel.set(timer, now);
    while (mono_us() < now + 200'000) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  };
  std::string keys;
  const auto heard = [&](char last) {
    Event e;
    c.engine.events().begin_read();
    while (c.engine.events().pop(e))
      if (e.type == EventType::key) keys += e.text + " " + std::to_string(e.a) + " ms, ";
    return keys.find(std::string(1, last) + " ") != std::string::npos;
  };
  heard('-');
  armed = true;
  send(first[0]);
  for (int i = 0; i < check::kPatience && !heard('6'); ++i) c.rest();
  send(third[0]);
  for (int i = 0; i < check::kPatience && !heard('7'); ++i) c.rest();
  if (!check::ok(keys == "5 20 ms, 6 200 ms, 7 20 ms, ",
                 "a key is reported once and whole when the packet thread stands still in its midst" + how))
    std::printf("# reported: %s\n", keys.c_str());
}

/** Sends more than the ring holds while nothing reads it. The ring drops and counts the excess, and then continues. */
void overflow() {
  Address local;
  Address::parse("127.0.0.1", 0, local);
  PortPair pair;
  PortPool pool(local, 0, 0, 0);
  pool.open(pair, mono_us());
  const auto ring = PacketRing::open(PacketRing::reserve(), local, {pair.rtp_port, pair.rtp_port, 0, 1});
  if (!ring) {
    check::ok(!allowed_here(), "no packet ring opens where raw sockets are forbidden");
    return;
  }
  RingPhone phone;
  // Loopback's own queue is short: on a busy machine it may drop some packets first.
  const size_t sent = PacketRing::kFrames + 3000;
  for (size_t i = 0; i < sent; ++i) phone.send(pair.rtp_port, 4);
  PacketRing::Frame frame;
  Datagram d;
  size_t got = 0, right = 0;
  uint16_t last = 0xffff;
  while (ring->next(frame)) {
    ++got;
    if (!read_datagram(frame.packet, frame.size, frame.verified, d)) continue;
    const uint16_t seq = get16(d.payload + 2);
    right += d.to_port == pair.rtp_port && d.from_port == phone.own.port && static_cast<uint16_t>(seq - last) < 3000;
    last = seq;
  }
  check::ok(got > PacketRing::kFrames * 9 / 10 && got <= PacketRing::kFrames && right == got,
            "a full ring keeps the packets that fit, unchanged");
  const size_t dropped = ring->take_drops();
  check::ok(dropped > 0 && dropped <= sent - got, "the ring counts the packets that do not fit");
  ring->give_back();
  phone.send(static_cast<uint16_t>(pair.rtp_port + 1));
  phone.send(pair.rtp_port, 1000);
  phone.send(pair.rtp_port);
  check::ok(ring->next(frame) && !frame.carried && read_flow(frame.packet, frame.size, d) &&
                d.from_port == phone.own.port && d.to_port == pair.rtp_port,
            "after an overflow the ring continues, and shows the flow of a packet too large for a frame");
  check::ok(ring->next(frame) && frame.carried && frame.size == kDatagramHeader + kRtpHeader + 160 && !ring->next(frame),
            "the ring delivers packets of its own ports only");
  ::close(pair.rtp_fd);
  ::close(pair.rtcp_fd);
}

}  // namespace

void packet_ring_tests() {
  const bool allowed = allowed_here();
  check::ok(true, std::string("packet rings are ") + (allowed ? "allowed" : "refused: streams stay on their sockets"));
  for (const bool io_uring : {true, false}) changing_over(io_uring, allowed);
  for (const bool io_uring : {true, false})
    for (const bool packet_ring : {true, false}) standing_still(io_uring, packet_ring, allowed);
  two_threads(allowed);
  switched_off();
  overflow();
}
