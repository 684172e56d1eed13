// Streams with an SRTP peer: accepted packets, re-keying, and the roll-over counter across re-INVITEs.
#include <string>
#include <vector>

#include "check.h"
#include "legs.h"

using namespace legs;

namespace {

void secured() {
  World w;
  TestLeg a(w, 1, {}), b(w, 2, {});
  const Address ra = address("192.0.2.1", 4000), rb = address("192.0.2.2", 5000);
  StreamConfig ca = config(ra, kUlaw);
  ca.secured = true;
  ca.receive_key.assign(30, 1);
  ca.send_key.assign(30, 2);
  a.stream->describe(ca, w.now);
  b.stream->describe(config(rb, kUlaw), w.now);
  a.stream->send_to(b.stream.get(), w.now);
  b.stream->send_to(a.stream.get(), w.now);
  auto peer_out = SrtpContext::make(SrtpSuite::aes128_sha1_80, ca.receive_key.data(), 30);
  auto peer_in = SrtpContext::make(SrtpSuite::aes128_sha1_80, ca.send_key.data(), 30);
  a.receive(rtp(0, 1, 0, 1), ra);
  check::ok(b.sent.empty() && a.counters->srtp_auth_failed == 1 && !a.counters->latched,
            "plain RTP on a secured stream is dropped and does not latch");
  const auto sealed = [&](SrtpContext& c, uint16_t seq) {
    auto p = rtp(0, seq, seq * 160u, 1);
    p.resize(p.size() + 64);
    p.resize(c.protect(p.data(), kRtpHeader + 160));
    return p;
  };
  a.receive(sealed(*peer_out, 2), ra);
  check::ok(b.sent.size() == 1 && b.sent[0].size() == 172, "SRTP leaves as RTP");
  b.receive(rtp(0, 9, 0, 2), rb);
  size_t n = a.sent.empty() ? 0 : a.sent[0].size();
  check::ok(n == 182 && peer_in->unprotect(a.sent[0].data(), n) == SrtpResult::ok, "RTP leaves as SRTP");
  // Re-keying: both keys are valid until the first packet with the new one.
  ca.receive_key.assign(30, 3);
  a.stream->describe(ca, w.now);
  auto fresh = SrtpContext::make(SrtpSuite::aes128_sha1_80, ca.receive_key.data(), 30);
  a.receive(sealed(*peer_out, 3), ra);
  a.receive(sealed(*fresh, 4), ra);
  a.receive(sealed(*peer_out, 5), ra);
  check::ok(b.sent.size() == 3 && a.counters->srtp_auth_failed == 2,
            "after re-keying the old key is valid until the first packet with the new one");
  auto wrong = SrtpContext::make(SrtpSuite::aes128_sha1_80, ca.send_key.data(), 30);
  w.count(EventType::none);
  for (uint16_t i = 0; i < 400; ++i) {
    a.receive(sealed(*wrong, static_cast<uint16_t>(10 + i)), ra);
    w.run(20);
  }
  check::equal(w.count(EventType::srtp_failed), 1, "five seconds of failed authentication are reported once");
}

/** Users of other products report that audio stops when sequence numbers wrap close to a re-INVITE. */
void secured_wrap(SrtpSuite suite, size_t key_bytes, const char* name) {
  World w;
  TestLeg a(w, 1, {}), b(w, 2, {});
  const Address ra = address("192.0.2.1", 4000), rb = address("192.0.2.2", 5000);
  StreamConfig ca = config(ra, kUlaw);
  ca.secured = true;
  ca.suite = suite;
  ca.receive_key.assign(key_bytes, 1);
  ca.send_key.assign(key_bytes, 2);
  a.stream->describe(ca, w.now);
  b.stream->describe(config(rb, kUlaw), w.now);
  a.stream->send_to(b.stream.get(), w.now);
  auto sender = SrtpContext::make(suite, ca.receive_key.data(), key_bytes);
  uint16_t seq = 65'000;
  const auto talk = [&](int packets) {
    for (int i = 0; i < packets; ++i, ++seq) {
      auto p = rtp(0, seq, seq * 160u, 1);
      p.resize(p.size() + 64);
      p.resize(sender->protect(p.data(), kRtpHeader + 160));
      a.receive(p, ra);
      w.run(20);
    }
  };
  talk(535);
  a.stream->describe(ca, w.now);
  talk(3);
  a.stream->describe(ca, w.now);
  talk(60);
  const std::string title(name);
  check::equal(b.sent.size(), size_t{598}, title + ": re-INVITEs around a wrap keep the roll-over counter");
  ca.receive_key.assign(key_bytes, 3);
  a.stream->describe(ca, w.now);
  sender = SrtpContext::make(suite, ca.receive_key.data(), key_bytes);
  talk(20);
  check::equal(b.sent.size(), size_t{618}, title + ": new keys restart the roll-over counter");
  check::ok(continuous(b.sent), title + ": the relayed stream is continuous across re-INVITEs and new keys");
}

/** A browser's path is lost after its numbers have wrapped, and comes back with the keys of its DTLS association. */
void consent_returns(SrtpSuite suite, size_t key_bytes, const char* name) {
  World w;
  TestLeg a(w, 1, {}), b(w, 2, {});
  const Address ra = address("192.0.2.1", 4000), rb = address("192.0.2.2", 5000);
  StreamConfig ca = config(ra, kUlaw);
  ca.secured = true;
  ca.suite = suite;
  ca.receive_key.assign(key_bytes, 1);
  ca.send_key.assign(key_bytes, 2);
  StreamConfig lost = config(Address{}, kUlaw);
  lost.may_send = lost.may_receive = false;
  a.stream->take_raw(true);
  a.stream->describe(ca, w.now);
  b.stream->describe(config(rb, kUlaw), w.now);
  a.stream->send_to(b.stream.get(), w.now);
  b.stream->send_to(a.stream.get(), w.now);
  auto theirs = SrtpContext::make(suite, ca.receive_key.data(), key_bytes);
  auto ours = SrtpContext::make(suite, ca.send_key.data(), key_bytes);
  uint16_t seq = 0, heard = 0, reported = 0;
  uint32_t ts = 0;
  size_t opened = 0, read = 0;
  // Numbers that leave out as many packets as a receiver forgives reach a wrap soon.
  const auto talk = [&](int packets, uint16_t step) {
    for (int i = 0; i < packets; ++i, ts += 160) {
      seq = static_cast<uint16_t>(seq + step);
      auto p = rtp(0, seq, ts, 1);
      p.resize(p.size() + 64);
      p.resize(theirs->protect(p.data(), kRtpHeader + 160));
      a.receive(p, ra);
      b.receive(rtp(0, seq, ts, 2), rb);
      w.run(20);
    }
    for (; opened < a.sent.size(); ++opened) {
      size_t n = a.sent[opened].size();
      heard += ours->unprotect(a.sent[opened].data(), n) == SrtpResult::ok;
    }
    for (; read < a.reports.size(); ++read) {
      size_t n = a.reports[read].size();
      reported += ours->unprotect_rtcp(a.reports[read].data(), n) == SrtpResult::ok;
    }
  };
  talk(400, 1);
  talk(30, 2900);
  a.stream->describe(lost, w.now);
  w.run(1000);
  check::equal(a.sent.size(), size_t{430}, std::string(name) + ": nothing leaves without a path");
  a.stream->describe(ca, w.now);
  talk(400, 1);
  check::equal(b.sent.size(), size_t{830}, std::string(name) + ": a browser that comes back is heard");
  check::equal(size_t{heard}, size_t{830}, std::string(name) + ": it hears, and no index is used twice with its key");
  check::ok(reported > 1 && reported == a.reports.size(), std::string(name) + ": the same holds for RTCP");
}

}  // namespace

void secured_stream_tests() {
  secured();
  secured_wrap(SrtpSuite::aes128_sha1_80, 30, "AES_CM_128_HMAC_SHA1_80");
  secured_wrap(SrtpSuite::gcm128, 28, "AEAD_AES_128_GCM");
  consent_returns(SrtpSuite::aes128_sha1_80, 30, "AES_CM_128_HMAC_SHA1_80");
  consent_returns(SrtpSuite::gcm128, 28, "AEAD_AES_128_GCM");
}
