// The peer's voice as packets bring it: where speech begins and ends, and how soon it stops what is played.
#include <string>
#include <vector>

#include "../src/codec/g711.h"
#include "check.h"
#include "legs.h"
#include "signal.h"

using namespace legs;

namespace {

constexpr int kRate = 8000, kTwenty = 160;
const SpeechWatchOptions kHigh{40, 600, false};

std::vector<int16_t> silence(int ms) {
  return std::vector<int16_t>(static_cast<size_t>(ms * 8));
}

/** A vowel of the level that a full-scale sine of 3.14 dBm0 has less `down`. */
std::vector<int16_t> vowel(int ms, double amplitude = 2280) {
  return signal::tone(220, kRate, ms / 1000.0, amplitude);
}

std::vector<int16_t> hiss(int ms, int amplitude) {
  std::vector<int16_t> out(static_cast<size_t>(ms * 8));
  uint32_t random = 7;
  for (auto& s : out) {
    random = random * 1664525U + 1013904223U;
    s = static_cast<int16_t>(static_cast<int>(random >> 16) % (2 * amplitude + 1) - amplitude);
  }
  return out;
}

std::vector<int16_t> joined(const std::vector<std::vector<int16_t>>& parts) {
  std::vector<int16_t> out;
  for (const auto& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

std::vector<int16_t> sum(std::vector<int16_t> a, const std::vector<int16_t>& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) a[i] = static_cast<int16_t>(a[i] + b[i]);
  return a;
}

/** Returns the beginnings and ends of speech, with the milliseconds at which their steps end. */
std::string edges(const std::vector<int16_t>& audio, int onset_ms = 40) {
  SpeechEdges edges(onset_ms, 600);
  std::string found;
  for (size_t at = 0; at + SpeechEdges::kStep <= audio.size(); at += SpeechEdges::kStep) {
    const auto edge = edges.take(&audio[at]);
    if (edge != SpeechEdges::Edge::began && edge != SpeechEdges::Edge::ended) continue;
    found += std::string(SpeechEdges::name(edge)) + " " + std::to_string((at + SpeechEdges::kStep) / 8) + " ";
  }
  return found;
}

void speech_edges() {
  const auto word = joined({silence(500), vowel(400), silence(1000)});
  check::ok(edges(word) == "began 540 ended 1500 ", "speech begins after 40 ms of voice and ends after 600 without");
  check::ok(edges(word, 80) == "began 580 ended 1500 ", "with less sensitivity after 80 ms");
  check::ok(edges(word, 160) == "began 660 ended 1500 ", "or 160 ms");
  bool quiet = true;
  for (int shift = 0; shift < 20; ++shift)
    quiet &= edges(joined({silence(500 + shift), vowel(20, 12'000), silence(1000)})).empty();
  check::ok(quiet, "a click of 20 ms is no speech, wherever it lies");
  check::ok(edges(joined({silence(503), vowel(20, 12'000), silence(40), vowel(20, 12'000), silence(500)})).empty(),
            "nor are two of them");
  check::ok(edges(hiss(3000, 3000)).empty(), "loud noise of the line is no speech");
  check::ok(edges(joined({signal::tone(200, kRate, 3, 70), vowel(400)})) == "began 3040 ", "hum is no speech");
  const auto noisy = joined({hiss(1000, 200), sum(vowel(400), hiss(400, 200)), hiss(1000, 200)});
  check::ok(edges(noisy) == "began 1040 ended 2000 ", "speech stands above the noise of the line");
}

void cleaning() {
  NoiseSuppression quieter;
  const auto voice = signal::tone(300, kRate, 1, 2870);
  const auto line = joined({hiss(2000, 600), sum(voice, hiss(1000, 600)), hiss(1000, 600)});
  std::vector<int16_t> after(line.size());
  for (size_t at = 0; at + kTwenty <= line.size(); at += kTwenty) quieter.take(&line[at], &after[at]);
  const auto level = [](const std::vector<int16_t>& of, size_t from_ms, size_t to_ms) {
    return signal::decibels(signal::rms(&of[from_ms * 8], (to_ms - from_ms) * 8));
  };
  check::ok(level(after, 1000, 2000) < level(line, 1000, 2000) - 8, "steady noise is reduced");
  check::within(level(after, 2200, 2900) - level(voice, 200, 900), -1.5, 1.5, "the voice above it stays");
  check::ok(level(after, 3300, 4000) < level(line, 3300, 4000) - 8, "noise after the voice is reduced");
  NoiseSuppression other;
  int16_t still[kTwenty] = {};
  other.take(still, still);
  check::equal(signal::rms(still, kTwenty), 0.0, "silence stays silent");
}

std::vector<uint8_t> packet(uint16_t seq, const int16_t* pcm) {
  auto p = rtp(0, seq, static_cast<uint32_t>(seq) * kTwenty, 1);
  for (size_t i = 0; i < kTwenty; ++i) p[kRtpHeader + i] = g711().to_ulaw[static_cast<uint16_t>(pcm[i])];
  return p;
}

bool loud(const std::vector<uint8_t>& p) {
  return std::abs(g711().from_ulaw[p[kRtpHeader + 80]]) > 1000 || std::abs(g711().from_ulaw[p[kRtpHeader + 83]]) > 1000;
}

/** A leg whose caller says `said`, a packet each 20 ms, while a sound of two seconds is fed to it. */
struct Line {
  World w;
  TestLeg a{w, 1, {}};
  Address from = address("192.0.2.1", 4000);
  uint16_t seq = 1;
  std::vector<std::string> told;

  explicit Line(const SpeechWatchOptions& options = kHigh) {
    StreamConfig c = config(from, kUlaw);
    c.fills_idle = true;
    a.stream->describe(c, w.now);
    a.stream->watch_speech(&options, w.now);
  }
  void feed(const std::string& name, bool yields) {
    a.stream->feed_mark(name + " began");
    a.stream->feed(std::make_shared<const std::vector<int16_t>>(signal::tone(500, kRate, 2, 8000)), kRate, yields,
                   w.now);
    a.stream->feed_mark(name + " over");
  }
  void say(const std::vector<int16_t>& pcm) {
    for (size_t at = 0; at + kTwenty <= pcm.size(); at += kTwenty) {
      a.receive(packet(seq++, &pcm[at]), from);
      w.run(20);
    }
    listen();
  }
  void listen() {
    Event e;
    w.events.begin_read();
    while (w.events.pop(e)) {
      if (e.type == EventType::speech || e.type == EventType::mark) told.push_back(e.text);
      if (e.type == EventType::feed_cut) told.push_back("cut " + e.text + " " + std::to_string(e.a));
    }
  }
  /** How many of the packets sent since `sent` hold the sound. */
  int sounding(size_t since) const {
    int n = 0;
    for (size_t i = since; i < a.sent.size(); ++i) n += loud(a.sent[i]);
    return n;
  }
};

void interrupting() {
  using Told = std::vector<std::string>;
  Line line;
  line.say(silence(400));
  line.feed("one", true);
  line.feed("two", true);
  line.say(silence(600));
  const size_t before = line.a.sent.size();
  check::ok(loud(line.a.sent.back()), "the feed plays while the caller is silent");
  line.say(vowel(20));
  check::equal(line.sounding(before), 1, "a packet with 20 ms of voice does not stop it");
  line.say(vowel(20));
  check::equal(line.sounding(before), 1, "the next one stops it when it arrives, before another packet is sent");
  line.say(vowel(200));
  check::ok(line.told == Told{"one began", "cut one began 620", "one over", "two began", "two over", "began"},
            "the cut is reported first, with what was played, then the marks, then the speech");
  check::ok(continuous(line.a.sent), "silence follows in the same numbering");

  Line other;
  other.say(silence(400));
  other.feed("firm", false);
  other.feed("soft", true);
  const size_t began = other.a.sent.size();
  other.say(vowel(1000));
  check::equal(other.sounding(began), 50, "what does not yield goes on");
  check::ok(other.told == Told{"firm began", "began"}, "and the speech is reported");
  other.say(vowel(1100));
  check::equal(other.sounding(began), 100, "what yields after it stops at the voice that goes on");
  check::ok(other.told.size() == 6 && other.told[2] == "firm over" && other.told[4].starts_with("cut soft began"),
            "and tells so");
}

void pausing() {
  using Told = std::vector<std::string>;
  Line line;
  line.say(vowel(300));
  line.w.run(1500);
  line.listen();
  check::ok(line.told == Told{"began", "paused", "ended"}, "speech ends when the caller sends no more packets");
  line.told.clear();
  line.say(joined({vowel(200), silence(100), vowel(200)}));
  check::ok(line.told == Told{"began", "paused", "resumed"}, "a pause within speech and its end are reported");
  line.a.stream->watch_speech(nullptr, line.w.now);
  line.told.clear();
  line.say(joined({silence(1000), vowel(400)}));
  check::ok(line.told.empty(), "nothing is reported once nobody watches");

  Line late;
  const auto word = vowel(80);
  for (const int at : {1, 0, 1, 0}) late.a.receive(packet(static_cast<uint16_t>(1 + at), &word[0]), late.from);
  late.listen();
  check::ok(late.told.empty(), "packets that come late or twice are not heard again");
}

void standing_still() {
  EventQueue queue(64);
  for (int i = 0; i < 100; ++i) {
    Event e;
    e.type = EventType::tap;
    queue.push(std::move(e));
  }
  for (int i = 0; i < 32; ++i) {
    Event e;
    e.type = EventType::mark;
    queue.push(std::move(e));
  }
  int taps = 0, marks = 0;
  Event e;
  for (int turn = 0; turn < 2; ++turn) {
    queue.begin_read();
    while (queue.pop(e)) ++(e.type == EventType::mark ? marks : taps);
    if (turn == 0) {
      check::equal(taps, 32, "audio fills half of the queue of a consumer that stands still");
      check::equal(marks, 32, "marks find room beside it");
      check::equal(queue.lost(), uint64_t{68}, "lost audio is counted");
    }
    Event again;
    again.type = EventType::tap;
    queue.push(std::move(again));
  }
  check::equal(taps, 33, "audio flows again once it is read");
}

}  // namespace

void speech_watch_tests() {
  standing_still();
  speech_edges();
  cleaning();
  interrupting();
  pausing();
}
