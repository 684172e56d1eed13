// What a peer gets while nothing plays to it: silence in the agreed codec, as one stream with all before and after.
#include <string>
#include <vector>

#include "check.h"
#include "legs.h"
#include "signal.h"

using namespace legs;

namespace {

const Address kRemote = address("192.0.2.1", 4000);

StreamConfig filled(const PayloadFacts& audio, const Address& remote = kRemote) {
  StreamConfig c = config(remote, audio);
  c.fills_idle = true;
  return c;
}

std::unique_ptr<Player> tone(uint64_t ms) {
  Piece p;
  p.kind = Piece::Kind::tone;
  p.hz[0] = 1000;
  p.tones = 1;
  p.on_ms = p.total_ms = ms;
  return std::make_unique<Player>("x", std::vector<Piece>{p}, 1);
}

bool marked(const std::vector<uint8_t>& p) {
  return p[1] & 0x80;
}

/** Reports whether each packet follows the one before by exactly `step` units of the RTP clock. */
bool steady(const std::vector<std::vector<uint8_t>>& sent, uint32_t step) {
  for (size_t i = 1; i < sent.size(); ++i)
    if (ts_of(sent[i]) - ts_of(sent[i - 1]) != step) return false;
  return continuous(sent);
}

size_t marks(const std::vector<std::vector<uint8_t>>& sent) {
  size_t n = 0;
  for (const auto& p : sent) n += marked(p);
  return n;
}

void one_stream() {
  World w;
  TestLeg a(w, 1, {});
  a.stream->describe(filled(kUlaw), w.now);
  w.run(1100);
  check::within(static_cast<double>(a.sent.size()), 49, 51, "an idle stream sends 50 packets a second");
  check::ok(marked(a.sent[0]) && marks(a.sent) == 1, "the first packet alone has the marker");
  check::ok(a.sent.back()[kRtpHeader] == 0xff && a.sent.back().size() == kRtpHeader + 160, "they hold silence");
  const size_t before = a.sent.size();
  a.stream->play(tone(200), w.now);
  w.run(200);
  check::ok(marked(a.sent[before]), "the talk spurt after silence begins with the marker");
  a.stream->play(tone(210), w.now);
  w.run(500);
  a.stream->play(tone(5000), w.now);
  w.run(100);
  a.stream->stop_play("");
  w.run(1000);
  check::ok(steady(a.sent, 160), "silence and plays are one stream: no number twice, no timestamp left out");
  check::within(static_cast<double>(a.sent.size()), 140, 142, "no tick goes without a packet");
  check::equal(a.stream->counters().send_failed + 0, uint64_t{0}, "nothing failed");
  const size_t at_key = a.sent.size();
  a.stream->send_keys({"k", "5", 100, 80}, w.now);
  w.run(1000);
  check::ok(continuous(a.sent) && a.sent.size() > at_key + 40, "silence goes on after a key");
  for (size_t i = 1; i < a.sent.size(); ++i)
    if ((a.sent[i][1] & 0x7f) == 0 && static_cast<int32_t>(ts_of(a.sent[i]) - ts_of(a.sent[i - 1])) < 0)
      check::ok(false, "a timestamp goes back");
}

void directions() {
  World w;
  TestLeg a(w, 1, {});
  StreamConfig c = filled(kUlaw);
  c.may_send = false;
  a.stream->describe(c, w.now);
  w.run(2000);
  check::ok(a.sent.empty(), "a peer that does not receive gets no silence");
  a.stream->describe(filled(kUlaw), w.now);
  w.run(1000);
  const size_t n = a.sent.size();
  check::within(static_cast<double>(n), 44, 47, "it gets silence when it receives again");
  a.stream->describe(c, w.now);
  w.run(1000);
  check::equal(a.sent.size(), n, "and none from the moment it is inactive");
  a.stream->describe(filled(kUlaw), w.now);
  w.run(1000);
  check::ok(a.sent.size() > n + 40 && continuous(a.sent) && marked(a.sent[n]), "it goes on with the next number, marked");
  check::within(ts_of(a.sent[n]) - ts_of(a.sent[n - 1]), 8700, 9100, "the clock went on in the meantime");
  TestLeg plain(w, 2, {});
  plain.stream->describe(config(kRemote, kUlaw), w.now);
  w.run(1000);
  check::ok(plain.sent.empty(), "a stream that does not fill its idle time sends nothing");
  TestLeg lost(w, 3, {});
  lost.stream->describe(filled(kUlaw, Address{}), w.now);
  w.run(1000);
  check::ok(lost.sent.empty(), "nothing goes to an unknown address");
}

void bridged() {
  World w;
  TestLeg a(w, 1, {}), b(w, 2, {});
  const Address rb = address("192.0.2.2", 5000);
  a.stream->describe(filled(kUlaw), w.now);
  b.stream->describe(filled(kUlaw, rb), w.now);
  w.run(50);
  a.stream->send_to(b.stream.get(), w.now);
  b.stream->send_to(a.stream.get(), w.now);
  w.run(500);
  check::ok(a.sent.empty() && b.sent.empty(), "a bridge that follows the answer is a relay from its first packet");
  uint16_t seq = 7;
  uint32_t ts = 90;
  const auto talk = [&](int packets) {
    for (int i = 0; i < packets; ++i, ts += 160) {
      a.receive(rtp(0, seq++, ts, 5), kRemote);
      w.run(20);
    }
  };
  talk(50);
  check::ok(b.sent.size() == 50 && seq_of(b.sent[0]) == 7 && ts_of(b.sent[0]) == 90, "the relay keeps its numbers");
  StreamConfig holding = filled(kUlaw);
  holding.may_receive = holding.may_send = false;
  a.stream->describe(holding, w.now);
  w.run(1000);
  check::within(static_cast<double>(b.sent.size()), 94, 97, "the other side of a hold hears silence");
  check::ok(a.sent.empty(), "the holder hears nothing");
  ts += 8000;
  a.stream->describe(filled(kUlaw), w.now);
  talk(50);
  check::within(static_cast<double>(b.sent.size()), 144, 147, "the relay takes over when the hold ends");
  check::ok(continuous(b.sent), "the numbers continue through the hold");
  bool ascending = true;
  for (size_t i = 1; i < b.sent.size(); ++i) ascending &= static_cast<int32_t>(ts_of(b.sent[i]) - ts_of(b.sent[i - 1])) > 0;
  check::ok(ascending, "no timestamp comes twice or goes back");
  b.stream->send_to(nullptr, w.now);
  a.stream->send_to(nullptr, w.now);
  const size_t n = b.sent.size();
  w.run(1000);
  check::ok(b.sent.size() > n + 40 && continuous(b.sent), "silence follows a bridge that ends");
}

/** Most telephones and PBXs send nothing in a hold that would let them send: no music, or c=0.0.0.0. */
void held_without_music(const StreamConfig& holding, const PayloadFacts& other, const std::string& what) {
  World w;
  TestLeg a(w, 1, {}), b(w, 2, {});
  a.stream->describe(filled(kUlaw), w.now);
  b.stream->describe(filled(other, address("192.0.2.2", 5000)), w.now);
  a.stream->send_to(b.stream.get(), w.now);
  b.stream->send_to(a.stream.get(), w.now);
  uint16_t seq = 7;
  uint32_t ts = 90;
  const auto talk = [&](int packets) {
    for (int i = 0; i < packets; ++i, ts += 160) {
      a.receive(rtp(0, seq++, ts, 5), kRemote);
      w.run(20);
    }
  };
  talk(100);
  a.stream->describe(holding, w.now);
  size_t before = b.sent.size();
  w.run(2200);
  check::ok(b.sent.size() > before + 1, what + ": the other side of a hold without music hears silence");
  before = b.sent.size();
  w.run(10'000);
  check::within(static_cast<double>(b.sent.size() - before), 499, 501, what + ": its stream goes on");
  ts += 8 * 12'200;
  before = b.sent.size();
  talk(250);
  check::within(static_cast<double>(b.sent.size() - before), 247, 251, what + ": music takes over at once");
  check::ok(b.sent.back().size() > kRtpHeader && b.sent.back()[kRtpHeader] != 0xff, what + ": it is the music");
  check::ok(continuous(b.sent), what + ": one stream");
  const size_t n = b.sent.size();
  a.stream->describe(filled(kUlaw), w.now);
  w.run(5000);
  check::within(static_cast<double>(b.sent.size() - n), 0, 8, what + ": the silence ends with the hold");
}

void holds() {
  StreamConfig one_way = filled(kUlaw);
  one_way.may_send = false;
  held_without_music(one_way, kUlaw, "a=sendonly");
  held_without_music(one_way, kAlaw, "a=sendonly, converted");
  held_without_music(one_way, kG722Audio, "a=sendonly, transcoded");
  held_without_music(filled(kUlaw, Address{}), kUlaw, "c=0.0.0.0");
}

/** Decodes the packets from `first` on and returns the level of the audio in dB below full scale. */
double heard(const TestLeg& leg, CodecId id, size_t first, size_t last) {
  const auto decoder = find_codec(id)->decoder(0);
  std::vector<int16_t> pcm(kMaxFrameSamples), audio;
  for (size_t i = 0; i < last; ++i) {
    const auto& p = leg.sent[i];
    const int n = decoder->decode(p.data() + kRtpHeader, static_cast<int>(p.size() - kRtpHeader), pcm.data(), kMaxFrameSamples);
    if (i >= first && n > 0) audio.insert(audio.end(), pcm.begin(), pcm.begin() + n);
  }
  return signal::decibels((signal::rms(audio) + 1e-9) / 32768);
}

void codecs_and_lengths() {
  for (const auto& audio : {kUlaw, kAlaw, kG722Audio, kG729Audio, kOpusAudio}) {
    const Codec* codec = find_codec(audio.codec);
    if (!codec->available()) continue;
    for (const int ptime : {20, 30, 60}) {
      World w;
      TestLeg a(w, 1, {});
      StreamConfig c = filled(audio);
      c.ptime_ms = ptime;
      a.stream->describe(c, w.now);
      a.stream->play(tone(600), w.now);
      w.run(3600);
      a.stream->play(tone(600), w.now);
      w.run(1200);
      const std::string what = std::string(codec->name) + " in packets of " + std::to_string(ptime) + " ms: ";
      const int made = audio.codec == CodecId::opus && ptime == 30 ? 20 : ptime;
      const auto of = [&](int ms) { return static_cast<size_t>(ms / made); };
      check::within(static_cast<double>(a.sent.size()), 4740.0 / made, 4820.0 / made, what + "packets for the whole time");
      check::ok(steady(a.sent, audio.clock_rate / 1000 * static_cast<uint32_t>(made)), what + "one steady stream");
      check::within(heard(a, codec->id, of(900), of(3500)), -400, -60, what + "silence is silent");
      check::within(heard(a, codec->id, of(3700), of(4100)), -25, -10, what + "the next play is heard");
      check::within(heard(a, codec->id, of(4500), a.sent.size()), -400, -60, what + "silence is silent again");
    }
  }
}

void idle_secured() {
  World w;
  TestLeg a(w, 1, {});
  StreamConfig c = filled(kUlaw);
  c.secured = true;
  c.receive_key.assign(30, 1);
  c.send_key.assign(30, 2);
  a.stream->describe(c, w.now);
  w.run(2000);
  auto peer = SrtpContext::make(SrtpSuite::aes128_sha1_80, c.send_key.data(), 30);
  size_t right = 0;
  for (auto p : a.sent) {
    size_t n = p.size();
    right += peer->unprotect(p.data(), n) == SrtpResult::ok && n == kRtpHeader + 160 && p[kRtpHeader] == 0xff;
  }
  check::ok(right == a.sent.size() && right > 90, "silence is encrypted for a peer with SRTP");
}

void listeners() {
  World w;
  TestLeg a(w, 1, {});
  a.stream->describe(filled(kUlaw), w.now);
  a.stream->tap({"t", true, 8000, 20, false}, w.now);
  w.run(2000);
  check::equal(w.count(EventType::tap), 0, "silence costs JavaScript nothing");
}

}  // namespace

void idle_tests() {
  one_stream();
  directions();
  bridged();
  holds();
  codecs_and_lengths();
  idle_secured();
  listeners();
}
