// Transcodes a tone and speech between all pairs of codecs through two streams with a simulated clock, on a clean
// network and with 5 % loss and 40 ms of jitter. The listener is a jitter buffer and decoder like a telephone's.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <vector>

#include "../src/codec/codec.h"
#include "../src/core/decode_path.h"
#include "../src/core/resample.h"
#include "../src/core/stream.h"
#include "check.h"
#include "signal.h"
#include "spectrum.h"
#include "speech.h"

using namespace media;

/** It is linked where AddressSanitizer watches the core. */
extern "C" void __asan_init() __attribute__((weak));

namespace {

constexpr int kHz = 8000;
constexpr uint64_t kStartUs = 10'000'000;

struct Arrival {
  uint16_t seq;
  std::vector<uint8_t> payload;
};
using Road = std::multimap<uint64_t, Arrival>;

PayloadFacts facts_of(const Codec& codec) {
  PayloadFacts f;
  f.kind = PayloadKind::audio;
  f.payload_type = static_cast<uint8_t>(96 + static_cast<int>(codec.id));
  f.codec = codec.id;
  f.name = intern(codec.name);
  f.clock_rate = static_cast<uint32_t>(codec.clock_rate);
  return f;
}

StreamConfig config_of(const Codec& codec, uint16_t port) {
  StreamConfig c;
  Address::parse("192.0.2.1", port, c.remote_rtp);
  c.remote_rtcp = c.remote_rtp;
  c.may_send = c.may_receive = c.sends = true;
  c.receive = {facts_of(codec)};
  c.send = c.receive[0];
  return c;
}

/** Receives a stream's packets like a telephone: knows only their codec. */
struct EarWire final : Wire {
  explicit EarWire(const Codec& codec) : codec(codec), path(kHz, counters) {}
  bool send_rtp(const uint8_t* p, size_t n, const Address&) override {
    RtpView v;
    if (parse_rtp(const_cast<uint8_t*>(p), n, v))
      path.insert(v.seq, v.ts, codec.id, false, p + v.header, v.payload, *now);
    return true;
  }
  bool send_rtcp(const uint8_t*, size_t, const Address&) override { return true; }
  const Codec& codec;
  StreamCounters counters;
  DecodePath path;
  const uint64_t* now = nullptr;
};

/** Encodes 8 kHz audio and returns the packets by arrival time. `rough` adds loss and jitter. */
Road sent(const Codec& codec, const std::vector<int16_t>& audio, bool rough) {
  const auto pcm = codec.sample_rate == kHz ? audio : resample_all(audio.data(), audio.size(), kHz, codec.sample_rate);
  const auto encoder = codec.encoder({});
  const int frame = codec.sample_rate / 50;
  Road network;
  unsigned random = 11;
  const auto draw = [&](unsigned below) {
    random = random * 1664525u + 1013904223u;
    return (random >> 8) % below;
  };
  for (int i = 0; i < static_cast<int>(pcm.size()) / frame; ++i) {
    std::vector<uint8_t> payload(1500);
    payload.resize(static_cast<size_t>(
        std::max(0, encoder->encode(&pcm[static_cast<size_t>(i * frame)], frame, payload.data(), 1400))));
    const bool lost = draw(100) < 5 && i > 5;
    const uint64_t delay = draw(40'000);
    if (rough && lost) continue;
    network.emplace(kStartUs + static_cast<uint64_t>(i) * 20'000 + (rough ? delay : 0),
                    Arrival{static_cast<uint16_t>(65'300 + i), std::move(payload)});
  }
  return network;
}

/** Returns what the listener hears, at 8 kHz, from the time at which the first packet is due. */
std::vector<int16_t> cross(const Codec& from, const Codec& to, const Road& network, double seconds) {
  uint64_t now = kStartUs;
  TimerWheel wheel{now};
  EventQueue events{1024};
  ThreadContext context{wheel, events};
  EarWire nowhere(from), ear(to);
  nowhere.now = ear.now = &now;
  Stream near(1, {}, context, nowhere, std::make_shared<StreamCounters>(), "near", now);
  Stream far(2, {}, context, ear, std::make_shared<StreamCounters>(), "far", now);
  near.describe(config_of(from, 4000), now);
  far.describe(config_of(to, 5000), now);
  near.send_to(&far, now);
  Address peer;
  Address::parse("192.0.2.1", 4000, peer);
  std::vector<int16_t> heard;
  auto next = network.begin();
  for (uint64_t ms = 0; ms < static_cast<uint64_t>(seconds * 1000); ++ms, now += 1000) {
    wheel.advance(now);
    for (; next != network.end() && next->first <= now; ++next) {
      const auto& [seq, payload] = next->second;
      std::vector<uint8_t> packet(kRtpHeader + payload.size() + kTailRoom);
      const auto index = static_cast<uint32_t>(static_cast<uint16_t>(seq - 65'300));
      write_rtp_header(packet.data(), facts_of(from).payload_type, false, seq,
                       index * facts_of(from).clock_rate / 50 + 0xffff'f000u, 77);
      std::copy(payload.begin(), payload.end(), packet.begin() + kRtpHeader);
      near.on_rtp(packet.data(), kRtpHeader + payload.size(), peer, now);
    }
    if (ms % 20 == 19) {
      int16_t pcm[kHz / 50];
      ear.path.pull(pcm, now);
      heard.insert(heard.end(), pcm, pcm + kHz / 50);
    }
  }
  near.send_to(nullptr, now);
  return heard;
}

/** Returns half a second of silence, two seconds of a tone and half a second of silence. */
std::vector<int16_t> burst() {
  std::vector<int16_t> out(kHz / 2);
  const auto tone = signal::tone(1000, kHz, 2);
  out.insert(out.end(), tone.begin(), tone.end());
  out.resize(out.size() + kHz / 2);
  return out;
}

void tone(const std::string& name, const std::vector<int16_t>& out) {
  const size_t step = kHz / 200;
  size_t first = out.size(), last = 0;
  for (size_t i = 0; i + step <= out.size(); i += step)
    if (signal::rms(&out[i], step) > 1500) {
      first = std::min(first, i);
      last = i + step;
    }
  if (!check::ok(last > first + kHz, name + ": the listener hears the tone")) return;
  check::within(static_cast<double>(last - first) * 1000 / kHz, 1980, 2020,
                name + ": the tone keeps its length within 20 ms");
  double best = 0, hz = 0;
  std::vector<double> levels;
  const size_t from = first + kHz / 4, n = last - kHz / 4 - from;
  // Measure piece by piece, because an adjustment of the jitter buffer shifts the phase.
  for (double candidate = 900; candidate <= 1100; candidate += 5) {
    double sum = 0;
    for (size_t i = 0; i + 800 <= n; i += 800) sum += signal::at(&out[from + i], 800, candidate, kHz);
    if (sum > best) best = sum, hz = candidate;
  }
  for (size_t i = 0; i + 160 <= n; i += 160) levels.push_back(signal::rms(&out[from + i], 160));
  const auto middle = levels.begin() + static_cast<std::ptrdiff_t>(levels.size() / 2);
  std::nth_element(levels.begin(), middle, levels.end());
  check::within(hz, 995, 1005, name + ": the tone keeps its frequency");
  check::within(signal::decibels(*middle / (8000 / std::sqrt(2.0))), -1, 1,
                name + ": the tone keeps its level within 1 dB");
}

}  // namespace

void crossing_tests() {
  open_g729(true);
  const auto words = speech::english();
  const auto others = speech::spoken("de", "Der Zug nach Hamburg faehrt heute von Gleis sieben ab, zwanzig Minuten spaeter.");
  if (!check::ok(signal::rms(words) > 200 && signal::rms(others) > 200, "espeak-ng produces speech")) return;
  const double unlike = spectrum::distance_db(words, others, kHz);
  check::within(unlike, 9, 40, "the distance measure separates different words");
  for (const bool rough : {false, true}) {
    if (!rough && __asan_init) continue;  // the sanitizer is slow, and checks only memory
    double farthest = 0;
    std::string where;
    for (const auto& from : codecs()) {
      if (!from.available()) continue;
      const Road tones = sent(from, burst(), rough), talk = sent(from, words, rough);
      for (const auto& to : codecs()) {
        if (!to.available()) continue;
        const std::string name =
            std::string(from.name) + " to " + to.name + (rough ? ", 5 % loss and 40 ms of jitter" : "");
        tone(name, cross(from, to, tones, 3.6));
        const auto heard = cross(from, to, talk, 6.4);
        const double distance = spectrum::distance_db(words, heard, kHz);
        check::within(distance, 0, rough ? 5.5 : 4.5,
                      name + ": speech stays close to the original, in dB of Bark bands");
        if (distance > farthest) farthest = distance, where = name;
      }
    }
    std::printf("# farthest speech: %.2f dB, %s\n", farthest, where.c_str());
  }
}
