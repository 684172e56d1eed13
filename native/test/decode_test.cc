// The decode path on a simulated clock: each codec through the jitter buffer, clean and with loss and jitter;
// resampling, pauses, detection, tones.
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "../src/codec/codec.h"
#include "../src/core/decode_path.h"
#include "../src/core/detect.h"
#include "../src/core/player.h"
#include "../src/core/resample.h"
#include "check.h"
#include "signal.h"

using namespace media;

namespace {

struct Result {
  double level_db, purity, heard_ms;
};

/** Encodes a tone, delivers it with loss and jitter, decodes it at `rate` and measures it. */
Result cross(const Codec& codec, int rate, double loss, int jitter_ms) {
  const double seconds = 6;
  const auto in = signal::tone(1000, codec.sample_rate, seconds);
  auto encoder = codec.encoder({});
  const int frame = codec.sample_rate / 50;
  std::multimap<uint64_t, std::pair<uint16_t, std::vector<uint8_t>>> network;
  unsigned random = 7;
  const int frames = static_cast<int>(in.size()) / frame;
  for (int i = 0; i < frames; ++i) {
    std::vector<uint8_t> payload(1500);
    const int n = encoder->encode(&in[static_cast<size_t>(i * frame)], frame, payload.data(), 1500);
    payload.resize(static_cast<size_t>(std::max(n, 0)));
    random = random * 1664525u + 1013904223u;
    const bool lost = i > 5 && (random >> 8) % 1000 < loss * 1000;
    random = random * 1664525u + 1013904223u;
    const uint64_t delay = jitter_ms ? (random >> 8) % static_cast<unsigned>(jitter_ms * 1000) : 0;
    if (!lost)
      network.emplace(static_cast<uint64_t>(i) * 20'000 + delay,
                      std::make_pair(static_cast<uint16_t>(i + 65400), payload));
  }
  StreamCounters counters;
  DecodePath path(rate, counters);
  std::vector<int16_t> out;
  for (uint64_t now = 10'000; now < static_cast<uint64_t>((seconds + 1) * 1e6); now += 20'000) {
    while (!network.empty() && network.begin()->first <= now) {
      const auto& [seq, payload] = network.begin()->second;
      path.insert(
          seq,
          static_cast<uint32_t>(static_cast<uint16_t>(seq - 65400)) * static_cast<uint32_t>(codec.clock_rate / 50) +
              0xfffffff0u,
          codec.id, false, payload.data(), payload.size(), network.begin()->first);
      network.erase(network.begin());
    }
    int16_t pcm[960];
    path.pull(pcm, now);
    out.insert(out.end(), pcm, pcm + rate / 50);
  }
  // Measure the middle four seconds in pieces of 100 ms, because an adjustment of the jitter buffer shifts the phase.
  double level = 0, tone = 0;
  for (int s = 0; s < 40; ++s) {
    const int16_t* p = &out[static_cast<size_t>(rate * 3 / 2 + s * rate / 10)];
    level += signal::rms(p, static_cast<size_t>(rate / 10));
    tone += signal::at(p, static_cast<size_t>(rate / 10), 1000, rate) / std::sqrt(2.0);
  }
  double heard = 0;
  for (size_t i = 0; i + static_cast<size_t>(rate / 100) <= out.size(); i += static_cast<size_t>(rate / 100))
    if (signal::rms(&out[i], static_cast<size_t>(rate / 100)) > 1000) heard += 10;
  return {signal::decibels(level / 40 / (8000 / std::sqrt(2.0))), tone / level, heard};
}

void pairs() {
  open_g729(true);
  for (const auto& codec : codecs()) {
    if (!codec.available()) continue;
    for (const int rate : {8000, 16000}) {
      const std::string name = std::string(codec.name) + " to " + std::to_string(rate / 1000) + " kHz";
      const Result clean = cross(codec, rate, 0, 0);
      check::within(clean.level_db, -1, 1, name + ": a tone keeps its level within 1 dB");
      check::within(clean.purity, codec.id == CodecId::g729 ? 0.9 : 0.97, 1.01,
                    name + ": the output contains only that tone");
      check::within(clean.heard_ms, 5960, 6100,
                    name + ": the tone keeps its length, except for concealment at its end");
      const Result rough = cross(codec, rate, 0.05, 40);
      // G.729 conceals by itself, and fades a tone sooner than the other codecs.
      check::within(rough.level_db, codec.id == CodecId::g729 ? -2 : -1.5, 1,
                    name + ": a tone keeps its level with 5 % loss and 40 ms of jitter");
      check::within(rough.purity, codec.id == CodecId::g729 ? 0.8 : 0.85, 1.01,
                    name + ": a tone stays pure with 5 % loss and 40 ms of jitter");
      check::within(rough.heard_ms, 5850, 6250, name + ": a tone keeps its length with 5 % loss and 40 ms of jitter");
    }
  }
}

void resampling() {
  for (const auto& [from, to] : std::vector<std::pair<int, int>>{{8000, 16000},
                                                                 {16000, 8000},
                                                                 {8000, 48000},
                                                                 {48000, 8000},
                                                                 {16000, 48000},
                                                                 {48000, 16000},
                                                                 {24000, 16000},
                                                                 {24000, 8000}}) {
    Resampler r(from, to);
    const auto in = signal::tone(1000, from, 1);
    std::vector<int16_t> out(static_cast<size_t>(to) + 10);
    size_t made = 0;
    for (size_t at = 0; at + static_cast<size_t>(from / 50) <= in.size(); at += static_cast<size_t>(from / 50))
      made += static_cast<size_t>(r.run(&in[at], from / 50, &out[made]));
    const std::string name = std::to_string(from) + " to " + std::to_string(to);
    check::equal(made, static_cast<size_t>(to), name + ": resampling neither drops nor adds samples");
    check::within(signal::decibels(signal::rms(&out[static_cast<size_t>(to / 10)], static_cast<size_t>(to / 2)) /
                                   (8000 / std::sqrt(2.0))),
                  -0.2, 0.2, name + ": resampling keeps the level");
    if (from > to) {
      Resampler alias(from, to);
      const auto high = signal::tone(to * 0.7, from, 0.5);
      std::vector<int16_t> low(static_cast<size_t>(to));
      const int n = alias.run(high.data(), static_cast<int>(high.size()), low.data());
      check::ok(signal::rms(&low[static_cast<size_t>(n / 4)], static_cast<size_t>(n / 2)) < 60,
                name + ": resampling removes frequencies that would alias");
    }
  }
}

void pauses() {
  const Codec& pcmu = *find_codec(CodecId::pcmu);
  auto encoder = pcmu.encoder({});
  const auto in = signal::tone(500, 8000, 0.02);
  uint8_t payload[160];
  encoder->encode(in.data(), 160, payload, 160);
  StreamCounters counters;
  DecodePath path(8000, counters);
  std::vector<double> levels;
  int16_t pcm[160];
  for (uint64_t now = 0; now < 6'000'000; now += 20'000) {
    const uint64_t i = now / 20'000;
    // One second of speech, three of comfort noise, speech again. Numbering and clock continue (RFC 3389).
    if (i < 50)
      path.insert(static_cast<uint16_t>(i), static_cast<uint32_t>(i * 160), CodecId::pcmu, false, payload, 160, now);
    if (i == 50) {
      const uint8_t level = 50;
      path.insert(50, 50 * 160, CodecId::other, true, &level, 1, now);
    }
    if (i >= 200 && i < 250)
      path.insert(static_cast<uint16_t>(i - 149), static_cast<uint32_t>(i * 160), CodecId::pcmu, false, payload, 160,
                  now);
    path.pull(pcm, now);
    levels.push_back(signal::rms(pcm, 160));
  }
  check::ok(levels[25] > 5000, "speech is heard before a pause");
  check::ok(levels[120] > 40 && levels[120] < 250, "a pause has comfort noise of the requested level (-50 dBov)");
  check::ok(levels[225] > 5000, "speech is heard after a pause");
  check::within(static_cast<double>(counters.late), 0, 0, "a pause makes no packet late");
}

/** A phone that sends audio during keys gives the packets of a key numbers among the audio's (baresip does). */
void keys_between() {
  const auto encoder = find_codec(CodecId::pcmu)->encoder({});
  const auto in = signal::tone(500, 8000, 0.02);
  uint8_t payload[160];
  encoder->encode(in.data(), 160, payload, 160);
  StreamCounters counters;
  DecodePath path(8000, counters);
  int16_t pcm[160];
  uint16_t seq = 65'500;
  uint32_t ts = 0, behind = 0;
  for (int i = 0; i < 140; ++i, ts += 160) {
    if (i >= 20 && i < 100) ++seq;  // of a key, whose packets do not come here
    if (i >= 100 && i < 120) seq = static_cast<uint16_t>(seq + 3);
    if (i == 130) ++seq, ts += 160;  // of a lost packet
    path.insert(seq++, ts, CodecId::pcmu, false, payload, 160, static_cast<uint64_t>(i) * 20'000);
    path.pull(pcm, static_cast<uint64_t>(i) * 20'000);
    if (i == 19) behind = ts - path.position();
    if (i == 129) {
      check::within(static_cast<double>(counters.concealed), 0, 0, "a key between packets of audio conceals nothing");
      check::equal(ts - path.position(), behind, "a key between packets of audio adds no delay");
    }
  }
  check::within(static_cast<double>(counters.concealed), 1, 1, "a lost packet is concealed");
}

void hearing() {
  VoiceActivity v;
  std::vector<int16_t> noise(160), loud = signal::tone(300, 8000, 0.02, 4000);
  unsigned random = 3;
  int changes = 0;
  const auto feed = [&](bool speech, int ms) {
    for (int t = 0; t < ms; t += 20) {
      for (auto& s : noise) s = static_cast<int16_t>(((random = random * 1664525u + 1013904223u) >> 16) % 60) - 30;
      if (v.take(speech ? loud.data() : noise.data(), 160, 8000)) ++changes;
    }
  };
  feed(false, 1000);
  check::ok(changes == 0 && !v.speaking(), "noise is not detected as speech");
  feed(true, 1500);
  check::ok(changes == 1 && v.speaking() && v.lasted_ms() == 1000,
            "speech is detected, with the length of the silence before it");
  feed(false, 1000);
  check::ok(changes == 2 && !v.speaking() && v.lasted_ms() == 1500, "the end of speech is detected, with its length");
  Detector d;
  auto cng = signal::tone(1100, 8000, 2);
  int heard = 0;
  for (size_t at = 0; at + 160 <= cng.size(); at += 160) heard |= d.fax(&cng[at], 160);
  check::equal(heard, 1, "the calling tone of a fax machine is detected");
}

void tones() {
  Piece p;
  p.kind = Piece::Kind::tone;
  p.hz[0] = 425;
  p.tones = 1;
  p.on_ms = 100;
  p.off_ms = 100;
  p.total_ms = 400;
  p.level_dbm0 = -10;
  Player player("x", {p}, 2);
  std::vector<int16_t> out;
  int16_t pcm[160];
  for (int got = 160; got == 160;) {
    got = player.pull(pcm, 160, 8000);
    out.insert(out.end(), pcm, pcm + got);
  }
  check::equal(out.size(), size_t{6400}, "a 400 ms tone played twice takes 800 ms");
  const double full = 32767 * std::pow(10.0, -3.14 / 20) / std::sqrt(2.0);
  check::within(signal::decibels(signal::rms(&out[80], 640) / full), -10.2, -9.8,
                "a tone has the requested level");
  check::ok(signal::rms(&out[840], 640) == 0, "the pause of a tone is silent");
}

/** Feeds a tone in pieces, with a mark after each third, and returns what plays until the feed is empty. */
std::vector<int16_t> fed(size_t piece, int rate, size_t& marks) {
  const auto in = signal::tone(1000, 8000, 0.5);
  Feed feed;
  for (size_t at = 0, i = 1; at < in.size(); at += piece, ++i) {
    const auto begin = in.begin() + static_cast<std::ptrdiff_t>(at);
    const auto length = static_cast<std::ptrdiff_t>(std::min(piece, in.size() - at));
    feed.add(std::make_shared<const std::vector<int16_t>>(begin, begin + length), 8000, false);
    if (i % 3 == 0) feed.mark(std::to_string(i));
  }
  std::vector<int16_t> out;
  std::vector<std::string> passed;
  while (!feed.empty()) {
    int16_t pcm[960];
    feed.pull(pcm, rate / 50, rate, passed);
    out.insert(out.end(), pcm, pcm + rate / 50);
  }
  marks = passed.size();
  return out;
}

void pieces() {
  for (const int rate : {8000, 16000, 48000}) {
    size_t marks = 0;
    const auto whole = fed(4000, rate, marks);
    for (const size_t piece : {1, 33, 100, 1234}) {
      const std::string name =
          "a tone in pieces of " + std::to_string(piece) + " samples, at " + std::to_string(rate / 1000) + " kHz,";
      check::ok(fed(piece, rate, marks) == whole, name + " plays like the whole tone");
      check::equal(marks, (3999 / piece + 1) / 3, name + " passes all its marks");
    }
  }
}

/** Whoever fills a feed may be faster than it plays. */
void full_feeds() {
  Feed feed;
  const auto minute = std::make_shared<const std::vector<int16_t>>(60 * 8000, int16_t{1000});
  for (int i = 0; i < 100; ++i) feed.add(minute, 8000, false);
  std::vector<std::string> passed;
  size_t played = 0;
  for (int16_t pcm[160]; !feed.empty(); played += 160) feed.pull(pcm, 160, 8000, passed);
  check::equal(played / minute->size(), size_t{41}, "a full feed drops sound, but for one longest file after another");

  for (int i = 0; i < 100'000; ++i) {
    feed.add(std::make_shared<const std::vector<int16_t>>(1, int16_t{1000}), 8000, false);
    feed.mark("m");
  }
  feed.clear(passed);
  check::equal(passed.size(), size_t{30'000}, "a full feed drops tiny pieces and marks");
  feed.add(minute, 8000, false);
  check::ok(!feed.empty(), "a feed that was cleared takes sound again");
}

}  // namespace

void decode_tests() {
  resampling();
  pairs();
  pauses();
  keys_between();
  hearing();
  tones();
  pieces();
  full_feeds();
}
