// Parsing of RTP, RTCP and telephone events; receive statistics; the timer wheel; the port pool.
#include <unistd.h>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "../src/core/bytes.h"
#include "../src/core/ports.h"
#include "../src/core/rtcp.h"
#include "../src/core/rtp.h"
#include "../src/core/telephone_event.h"
#include "../src/core/timer.h"
#include "check.h"

using namespace media;

static void parsing() {
  uint8_t p[64] = {};
  write_rtp_header(p, 101, true, 0xffee, 0x12345678, 0x9abcdef0);
  RtpView v;
  check::ok(parse_rtp(p, 16, v) && v.payload_type == 101 && v.marker && v.seq == 0xffee && v.ts == 0x12345678 &&
                v.ssrc == 0x9abcdef0 && v.payload == 4,
            "an RTP header parses as it was written");
  check::ok(!parse_rtp(p, 11, v), "eleven bytes are refused as RTP");
  p[0] = 0x40;
  check::ok(!parse_rtp(p, 16, v), "RTP version 1 is refused");
  p[0] = 0x8f;
  check::ok(!parse_rtp(p, 40, v), "a header with more CSRCs than bytes is refused");
  p[0] = 0x90;
  put16(p + 14, 0xffff);
  check::ok(!parse_rtp(p, 40, v), "an RTP extension longer than the packet is refused");
  put16(p + 14, 1);
  check::ok(parse_rtp(p, 40, v) && v.header == 20 && v.payload == 20, "an RTP extension is skipped");
  p[0] = 0xa0;
  p[39] = 29;
  check::ok(!parse_rtp(p, 40, v), "more padding than payload is refused");
  p[39] = 0;
  check::ok(!parse_rtp(p, 40, v), "a padding length of zero is refused");
  p[39] = 8;
  check::ok(parse_rtp(p, 40, v) && v.payload == 20, "the payload excludes padding");
}

static void statistics() {
  ReceiveStats s;
  using V = ReceiveStats::Verdict;
  uint64_t now = 0;
  uint32_t ts = 0xffffff00;
  bool fresh = true;
  // 24 hours at 50 packets per second with 0.1 % loss.
  uint64_t lost = 0;
  for (uint32_t i = 0; i < 24 * 3600 * 50; ++i, ts += 160, now += 20'000) {
    if (i % 1000 == 500) {
      ++lost;
      continue;
    }
    if (s.take(1, static_cast<uint16_t>(i + 60000), ts, 8000, now, true) != V::fresh) fresh = false;
  }
  check::ok(fresh, "packets stay fresh across the wraps of sequence numbers and timestamps in 24 hours");
  check::equal(s.lost(), lost, "every loss in 24 hours is counted");
  check::ok(s.jitter_ms() < 0.01, "a steady stream has no jitter");
  const uint16_t top = s.max_seq();
  check::ok(s.take(1, top, ts, 8000, now, true) == V::duplicate, "a repeated packet is a duplicate");
  check::ok(s.take(1, static_cast<uint16_t>(top + 2), ts, 8000, now, true) == V::fresh, "a packet one ahead is fresh");
  check::ok(s.take(1, static_cast<uint16_t>(top + 1), ts, 8000, now, true) == V::reordered,
            "the overtaken packet is reordered");
  check::equal(s.lost(), lost, "a reordered packet does not count as lost");
  check::ok(s.take(1, static_cast<uint16_t>(top + 20000), ts, 8000, now, true) == V::doubtful,
            "a packet far ahead is doubtful");
  check::ok(s.take(1, static_cast<uint16_t>(top + 20001), ts, 8000, now, true) == V::fresh,
            "a second packet in a row after a jump is accepted");
  check::equal(s.lost(), lost, "a jump does not count as loss");
  check::ok(s.take(2, 5, ts, 8000, now, true) == V::fresh && s.ssrc_changes() == 1,
            "another SSRC restarts the statistics");
  ReceiveStats edge;
  edge.take(1, 1000, 0, 8000, 0, true);
  check::ok(edge.take(1, 937, 0, 8000, 0, true) == V::reordered && edge.take(1, 936, 0, 8000, 0, true) == V::doubtful,
            "a packet 63 behind is reordered, a packet 64 behind is doubtful");
  ReceiveStats j;
  now = 0;
  for (uint32_t i = 0; i < 1000; ++i)
    j.take(1, static_cast<uint16_t>(i), i * 160, 8000, now + i * 20'000 + (i % 2) * 10'000, true);
  check::within(j.jitter_ms(), 9.5, 10.5,
                "packets that are alternately 10 ms late have 10 ms of jitter (RFC 3550 A.8)");
}

static void reports() {
  uint8_t p[256];
  OurReport r;
  r.ssrc = 7;
  r.sender = true;
  r.wall_us = 1'700'000'000'500'000;
  r.packets = 3;
  r.octets = 480;
  r.block = true;
  r.peer_ssrc = 9;
  r.cumulative_lost = -2;
  r.fraction_lost = 128;
  r.jitter = 80;
  r.last_sr = 0x01020304;
  r.delay = 65536;
  const size_t n = write_rtcp(p, r, "0123456789abcdef");
  check::ok(n % 4 == 0 && n <= 128, "a report is a whole number of words");
  PeerReport in;
  check::ok(parse_rtcp(p, n, 9, in) && in.sender_info && in.block && in.cumulative_lost == -2 &&
                in.fraction_lost == 128 && in.last_sr == 0x01020304,
            "a report parses as it was written");
  check::equal(in.middle_ntp, middle_ntp(r.wall_us), "a parsed report has the middle bits of the NTP time");
  bool refused = true;
  for (size_t cut = 1; cut < n; ++cut)
    if (cut % 4 != 0 && parse_rtcp(p, cut, 9, in)) refused = false;
  check::ok(refused, "a truncated report is refused");
  p[0] = 0x9f;
  check::ok(!parse_rtcp(p, n, 9, in), "a report with more blocks than bytes is refused");
}

static void keys() {
  KeyReceiver k;
  KeyReceiver::Key out;
  uint64_t now = 1'000'000;
  int told = 0;
  // The marker and the first packets are lost, and the end comes three times: still one key.
  for (uint16_t d = 480; d <= 800; d = static_cast<uint16_t>(d + 160))
    told += k.take({5, false, 10, d}, 1000, 8000, now += 20'000, out);
  for (int i = 0; i < 3; ++i) told += k.take({5, true, 10, 960}, 1000, 8000, now += 20'000, out);
  check::ok(told == 1 && out.digit == '5' && out.duration_ms == 120, "a key is reported once, at its first end");
  told = k.take({5, true, 10, 960}, 1000, 8000, now += 20'000, out);
  check::equal(told, 0, "a late repeated end does not report the key again");
  told = 0;
  for (int i = 0; i < 3; ++i) told += k.take({5, true, 10, 400}, 3000, 8000, now += 20'000, out);
  check::equal(told, 1, "the same digit with another timestamp is another key");
  k.take({1, false, 10, 160}, 5000, 8000, now += 20'000, out);
  const bool by_next = k.take({2, false, 10, 160}, 6000, 8000, now += 20'000, out);
  check::ok(by_next && out.digit == '1', "a key without an end is reported when the next key begins");
  check::ok(!k.expire(now + 100'000, out) && k.expire(now + 200'000, out) && out.digit == '2',
            "a key without an end is reported when no more packets come");
  bool long_once = !k.take({3, false, 10, 0xffff}, 100'000, 8000, now, out);
  long_once = long_once && !k.take({3, false, 10, 800}, 100'000 + 0xffff, 8000, now, out);
  long_once = long_once && k.take({3, true, 10, 1600}, 100'000 + 0xffff, 8000, now, out);
  check::ok(long_once && out.duration_ms > 8000, "a key that outlasts the duration field is one key");
}

static void keys_with_moving_timestamps() {
  KeyReceiver k;
  KeyReceiver::Key out;
  uint64_t now = 1'000'000;
  uint32_t ts = 1000;
  int told = 0;
  const auto press = [&](bool moving_ends) {
    for (uint16_t d = 160; d <= 800; d = static_cast<uint16_t>(d + 160), ts += 160)
      told += k.take({5, false, 10, d}, ts, 8000, now += 20'000, out);
    for (int i = 0; i < 3; ++i, ts += moving_ends ? 160 : 0)
      told += k.take({5, true, 10, 960}, ts, 8000, now += 20'000, out);
  };
  press(false);
  check::ok(told == 1 && out.duration_ms == 120, "a key whose packets each have a timestamp of their own is one key");
  press(true);
  check::equal(told, 2, "so is one whose repeated ends have their own, and the key before it is another");
}

static void keys_with_one_timestamp() {
  KeyReceiver k;
  KeyReceiver::Key out;
  uint64_t now = 1'000'000;
  std::string told;
  const auto take = [&](const TelephoneEvent& e) {
    if (k.take(e, 1000, 8000, now += 20'000, out)) told += out.digit;
  };
  for (const uint8_t digit : {1, 2, 3}) {
    take({digit, false, 10, 160});
    for (int i = 0; i < 3; ++i) take({digit, true, 10, 800});
  }
  check::ok(told == "123", "different keys with one timestamp are reported each, and once");
  take({4, false, 10, 160});
  take({5, false, 10, 160});
  take({5, true, 10, 800});
  check::ok(told == "12345", "so are they when the end of one is lost");
}

static void timers() {
  TimerWheel wheel(0);
  struct Owner {
    Timer timer;
    uint64_t fired = 0;
  } a, b, c;
  for (Owner* o : {&a, &b, &c}) o->timer.bind([](void* p, uint64_t now) { static_cast<Owner*>(p)->fired = now; }, o);
  wheel.set(a.timer, 20'000);
  wheel.set(b.timer, 5'000'000);
  wheel.set(c.timer, 30'000);
  c.timer.cancel();
  check::equal(wheel.wait_ms(0, 100), 20, "the wheel returns the time until the next timer");
  for (uint64_t now = 0; now < 6'000'000; now += 500) wheel.advance(now);
  check::within(static_cast<double>(a.fired), 20'000, 21'000, "a timer fires within a millisecond of its due time");
  check::within(static_cast<double>(b.fired), 5'000'000, 5'001'000,
                "a timer fires on time after several turns of the wheel");
  check::equal(c.fired, 0u, "a cancelled timer does not fire");
  wheel.set(a.timer, 7'000'000);
  wheel.advance(60'000'000);
  check::equal(a.fired, 60'000'000u, "an overdue timer fires at once after a stall");
}

static void ports() {
  Address local;
  Address::parse("127.0.0.1", 0, local);
  uint16_t first = 0;
  {
    PortPool probe(local, 0, 0, 0);
    PortPair pair;
    check::ok(probe.open(pair, 0), "the system can choose a pair of ports");
    first = pair.rtp_port;
    close(pair.rtp_fd);
    close(pair.rtcp_fd);
  }
  check::ok(first % 2 == 0, "RTP has an even port");
  PortPool pool(local, first, static_cast<uint16_t>(first + 1), 30'000'000);
  PortPair pair, none;
  check::ok(pool.open(pair, 0) && pair.rtp_port == first && pair.rtcp_port == first + 1,
            "RTCP has the odd port above RTP's");
  check::ok(!pool.open(none, 0), "open fails when all pairs are in use");
  close(pair.rtp_fd);
  close(pair.rtcp_fd);
  pool.give_back(first, 1'000'000);
  check::ok(!pool.open(none, 2'900'000), "a pair without late packets rests for 2 s");
  check::ok(pool.open(pair, 3'000'000), "a rested pair is reused");
  close(pair.rtp_fd);
  close(pair.rtcp_fd);

  const int late = socket(AF_INET, SOCK_DGRAM, 0);
  const auto send_to = [&](uint16_t port) {
    Address at = local;
    at.port = port;
    sockaddr_in6 sa;
    const socklen_t n = at.to(sa);
    sendto(late, "late", 4, 0, reinterpret_cast<sockaddr*>(&sa), n);
  };
  pool.give_back(first, 0);
  for (uint64_t second = 2; second < 30; second += 2) {
    send_to(second % 4 ? first : static_cast<uint16_t>(first + 1));
    check::ok(!pool.open(none, second * 1'000'000), "a pair rests longer while late packets arrive");
  }
  send_to(first);
  check::ok(pool.open(pair, 30'000'000), "a pair with late packets is reused after the quarantine of 30 s");
  char byte;
  check::ok(recv(pair.rtp_fd, &byte, 1, MSG_DONTWAIT) < 0, "the next call on a pair gets no late packets");
  close(pair.rtp_fd);
  close(pair.rtcp_fd);
  close(late);
}

void rtp_tests() {
  parsing();
  statistics();
  reports();
  keys();
  keys_with_moving_timestamps();
  keys_with_one_timestamp();
  timers();
  ports();
}
