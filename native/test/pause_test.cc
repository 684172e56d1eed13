// Pauses of a sender as its peer hears them: comfort noise (RFC 3389), silence frames of G.729 Annex B, Opus DTX. Also
// the losses that Opus FEC repairs.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "../src/core/resample.h"
#include "check.h"
#include "legs.h"
#include "signal.h"
#include "spectrum.h"
#include "speech.h"

using namespace legs;

namespace {

constexpr int kRateHz = 8000, kTick = kRateHz / 50;
constexpr uint8_t kNoise = 13;
/** The root mean square of the room noise behind the speech: -66 dBov. Opus takes louder noise for speech. */
constexpr double kRoom = 16;

const PayloadFacts kCn = payload(kNoise, "CN", CodecId::other, 8000, PayloadKind::comfort_noise);

uint8_t type_of(const std::vector<uint8_t>& p) {
  return p[1] & 0x7f;
}

std::vector<uint8_t> packet(uint8_t pt, uint16_t seq, uint32_t ts, const std::vector<uint8_t>& bytes) {
  auto p = rtp(pt, seq, ts, 7, bytes.size());
  std::copy(bytes.begin(), bytes.end(), p.begin() + kRtpHeader);
  return p;
}

StreamConfig with_noise(StreamConfig c, int pt) {
  if (pt >= 0) c.receive.push_back(kCn);
  c.comfort_noise_pt = pt;
  return c;
}

/** A telephone at the far end: decodes the packets sent to it and keeps the audio. */
struct Ear {
  explicit Ear(TestLeg& leg) : leg(leg) {}
  void listen(CodecId codec, uint64_t now_us) {
    for (; taken < leg.sent.size(); ++taken) {
      const auto& p = leg.sent[taken];
      path.insert(seq_of(p), ts_of(p), codec, type_of(p) == kNoise, p.data() + kRtpHeader, p.size() - kRtpHeader, now_us);
    }
    int16_t pcm[kTick];
    path.pull(pcm, now_us);
    heard.insert(heard.end(), pcm, pcm + kTick);
  }
  double rms(double from_s, double to_s) const {
    return signal::rms(&heard[static_cast<size_t>(from_s * kRateHz)], static_cast<size_t>((to_s - from_s) * kRateHz));
  }
  int peak(double from_s, double to_s) const {
    int most = 0;
    for (auto i = static_cast<size_t>(from_s * kRateHz); i < static_cast<size_t>(to_s * kRateHz); ++i)
      most = std::max(most, std::abs(heard[i]));
    return most;
  }
  TestLeg& leg;
  StreamCounters counters;
  DecodePath path{kRateHz, counters};
  std::vector<int16_t> heard;
  size_t taken = 0;
};

/** One second of a tone, one second each of comfort noise at -50 and -40 dBov, and one second of the tone. */
struct ToldPause {
  ToldPause(const PayloadFacts& to, int their_noise) {
    auto cfg = with_noise(config(p.ra, kUlaw), kNoise);
    p.a.stream->describe(cfg, p.w.now);
    p.b.stream->describe(with_noise(config(p.rb, to), their_noise), p.w.now);
    const auto tone = signal::tone(500, kRateHz, 0.02);
    std::vector<uint8_t> speech(kTick);
    find_codec(CodecId::pcmu)->encoder({})->encode(tone.data(), kTick, speech.data(), kTick);
    uint16_t seq = 100;
    for (int i = 0; i < 200; ++i) {
      const auto ts = static_cast<uint32_t>(i * kTick);
      if (i < 50 || i >= 150) p.a.receive(packet(0, seq++, ts, speech), p.ra);
      if (i == 50 || i == 100) p.a.receive(packet(kNoise, seq++, ts, {static_cast<uint8_t>(i == 50 ? 50 : 40)}), p.ra);
      if (i == 60) pause_from = p.b.sent.size();
      if (i == 148) pause_to = p.b.sent.size();
      p.w.run(20);
      ear.listen(to.codec, p.w.now);
    }
  }
  int count(uint8_t pt) const {
    return static_cast<int>(std::count_if(p.b.sent.begin() + static_cast<std::ptrdiff_t>(pause_from),
                                          p.b.sent.begin() + static_cast<std::ptrdiff_t>(pause_to),
                                          [&](const auto& sent) { return type_of(sent) == pt; }));
  }
  Pair p{kUlaw, kUlaw};
  Ear ear{p.b};
  size_t pause_from = 0, pause_to = 0;
};

void told() {
  const ToldPause pause(kG722Audio, kNoise);
  const auto& sent = pause.p.b.sent;
  check::equal(pause.count(9), 0, "a transcoded pause is not encoded when the peer takes comfort noise");
  check::within(pause.count(kNoise), 3, 6, "a transcoded pause is reported when its level changes and twice a second");
  std::vector<int> levels;
  bool unmarked = true, resumed = false;
  for (size_t i = 1; i < sent.size(); ++i) {
    if (type_of(sent[i]) == kNoise) {
      levels.push_back(sent[i][kRtpHeader]);
      unmarked = unmarked && sent[i].size() == kRtpHeader + 1 && !(sent[i][1] & 0x80);
    } else if (type_of(sent[i - 1]) == kNoise) {
      resumed = (sent[i][1] & 0x80) != 0;
    }
  }
  if (!check::ok(!levels.empty(), "a transcoded pause sends comfort noise packets")) return;
  check::within(levels.front(), 48, 52, "the first comfort noise packet has the sender's level");
  check::within(levels.back(), 38, 42, "later comfort noise packets follow the sender's level");
  check::ok(unmarked && resumed, "the first packet after a pause has the marker, and none within it (RFC 3389 §4)");
  check::ok(continuous(sent), "sequence numbers continue across a pause");
  check::within((ts_of(sent.back()) - ts_of(sent.front())) / 8.0, 3850, 4000, "the RTP clock runs through a pause");
  check::ok(pause.ear.rms(0.5, 0.9) > 3000 && pause.ear.rms(3.5, 3.9) > 3000,
            "the peer hears the tone before and after a pause");
  check::within(signal::decibels(pause.ear.rms(1.4, 1.9) / 32767), -52, -48,
                "the peer hears noise of -50 dBov in a pause");
}

void sounded() {
  for (const auto& [to, name] : {std::pair(kG722Audio, "transcoded"), std::pair(kUlaw, "relayed")}) {
    const ToldPause pause(to, -1);
    const std::string title(name);
    check::equal(pause.count(kNoise), 0, title + ": a peer without comfort noise gets no comfort noise packets");
    check::within(pause.count(to.payload_type), 86, 89,
                  title + ": a peer without comfort noise gets an audio packet every 20 ms");
    check::within(signal::decibels(pause.ear.rms(1.4, 1.9) / 32767), -52, -48,
                  title + ": a peer without comfort noise hears noise of -50 dBov");
    check::within(signal::decibels(pause.ear.rms(2.4, 2.9) / 32767), -42, -38,
                  title + ": a peer without comfort noise hears the change to -40 dBov");
    check::ok(pause.ear.rms(0.5, 0.9) > 3000 && pause.ear.rms(3.5, 3.9) > 3000,
              title + ": a peer without comfort noise hears the tone around the pause");
    check::ok(continuous(pause.p.b.sent), title + ": sequence numbers continue across the noise of a pause");
  }
}

void relayed() {
  const ToldPause pause(kUlaw, kNoise);
  check::equal(pause.count(kNoise), 1, "comfort noise packets are relayed unchanged");
  check::equal(pause.count(0), 0, "no audio packet is added to relayed comfort noise");
  ToldPause keyed(kUlaw, -1);
  uint16_t seq = 1000;
  keyed.p.a.receive(packet(kNoise, seq++, 50'000, {60}), keyed.p.ra);
  keyed.p.w.run(100);
  const size_t before = keyed.p.b.sent.size();
  for (int i = 0; i < 3; ++i) {
    auto k = rtp(101, seq++, 51'000, 7, 4);
    write_telephone_event(k.data() + kRtpHeader, {5, i == 2, 10, static_cast<uint16_t>(160 * (i + 1))});
    keyed.p.a.receive(k, keyed.p.ra);
    keyed.p.w.run(20);
  }
  const bool keys = keyed.p.b.sent.size() == before + 3 && type_of(keyed.p.b.sent.back()) == 101;
  check::ok(keys, "a key in a pause passes, and stops the noise of the pause");
}

void relayed_silence_frames() {
  for (const bool reads : {true, false}) {
    Pair p(kG729Audio, kG729Audio);
    auto c = config(p.rb, kG729Audio);
    c.silence_frames = reads;
    p.b.stream->describe(c, p.w.now);
    const std::vector<size_t> sizes{20, 20, 12, 2, 2, 20};
    for (size_t i = 0; i < sizes.size(); ++i)
      p.a.receive(rtp(18, static_cast<uint16_t>(i + 5), static_cast<uint32_t>(i) * 160, 7, sizes[i]), p.ra);
    std::vector<size_t> passed;
    for (const auto& sent : p.b.sent) passed.push_back(sent.size() - kRtpHeader);
    const auto wanted = reads ? sizes : std::vector<size_t>{20, 20, 10, 20};
    check::ok(passed == wanted && continuous(p.b.sent),
              reads ? "G.729 silence frames are relayed to a peer that reads them"
                    : "G.729 silence frames are removed, without a gap, for a peer that does not read them");
  }
}

/** Returns two seconds of room noise, two with speech, four of room noise, two with speech. */
std::vector<int16_t> talk(const std::vector<int16_t>& words) {
  std::vector<int16_t> out(10 * kRateHz);
  unsigned random = 5;
  for (size_t i = 0; i < out.size(); ++i) {
    random = random * 1664525u + 1013904223u;
    const double noise = ((random >> 8) % 20'001 / 10'000.0 - 1) * kRoom * std::sqrt(3.0);
    const size_t second = i / kRateHz, word = second >= 2 && second < 4 ? i - 2 * kRateHz : second >= 8 ? i - 8 * kRateHz : 0;
    out[i] = static_cast<int16_t>(std::clamp(noise + (word ? words[word] : 0), -32767.0, 32767.0));
  }
  return out;
}

struct Crossing {
  size_t sent = 0, silence = 0;  // packets of the speaker, and those of two bytes or less
  size_t passed = 0, told = 0;   // audio and comfort noise packets sent to the peer in the pause
  double room_rms = 0, speech_rms = 0;
  int room_peak = 0;
};

Crossing cross(const PayloadFacts& from, const EncoderOptions& options, int their_noise,
               const std::vector<int16_t>& audio) {
  Crossing c;
  Pair p(from, kUlaw);
  p.b.stream->describe(with_noise(config(p.rb, kUlaw), their_noise), p.w.now);
  Ear ear(p.b);
  const auto encoder = find_codec(from.codec)->encoder(options);
  const int rate = encoder->sample_rate(), frame = rate / 50;
  const auto pcm = rate == kRateHz ? audio : resample_all(audio.data(), audio.size(), kRateHz, rate);
  uint16_t seq = 9;
  for (int i = 0; i < 500; ++i) {
    std::vector<uint8_t> bytes(1400);
    const int n = encoder->encode(&pcm[static_cast<size_t>(i * frame)], frame, bytes.data(), 1400);
    bytes.resize(static_cast<size_t>(std::max(n, 0)));
    if (n > 0) {
      ++c.sent;
      if (n <= 2) ++c.silence;
      p.a.receive(packet(from.payload_type, seq++, static_cast<uint32_t>(i) * from.clock_rate / 50, bytes), p.ra);
    }
    p.w.run(20);
    if (i >= 250 && i < 390)
      for (size_t k = ear.taken; k < p.b.sent.size(); ++k) ++(type_of(p.b.sent[k]) == kNoise ? c.told : c.passed);
    ear.listen(CodecId::pcmu, p.w.now);
  }
  c.room_rms = ear.rms(5.2, 7.8);
  c.room_peak = ear.peak(5.2, 7.8);
  c.speech_rms = ear.rms(2.4, 3.9);
  return c;
}

void silence_of_codecs(const std::vector<int16_t>& words) {
  const auto audio = talk(words);
  const double loud = signal::rms(&audio[static_cast<size_t>(2.3 * kRateHz)], static_cast<size_t>(1.5 * kRateHz));
  struct Row {
    const PayloadFacts& codec;
    const char* name;
    EncoderOptions with, without;
  };
  EncoderOptions plain, dtx, annexb;
  plain.sample_rate = dtx.sample_rate = 16000;
  dtx.dtx = annexb.dtx = true;
  for (const Row& row : {Row{kG729Audio, "G.729 Annex B", annexb, {}}, Row{kOpusAudio, "Opus DTX", dtx, plain}}) {
    if (!find_codec(row.codec.codec)->available()) continue;
    const std::string name(row.name);
    const Crossing all = cross(row.codec, row.without, -1, audio);
    check::ok(all.sent == 500 && all.silence == 0, name + ": every frame is sent whole when disabled");
    const Crossing heard = cross(row.codec, row.with, -1, audio);
    check::within(static_cast<double>(heard.sent), 100, 400, name + ": few packets are sent in pauses");
    check::ok(heard.silence > 0, name + ": pauses begin with a silence frame");
    check::within(static_cast<double>(heard.passed), 139, 141,
                  name + ": a peer without comfort noise gets packets throughout a pause");
    check::within(signal::decibels(heard.room_rms / kRoom), -7, 5,
                  name + ": a peer without comfort noise hears the room at its level");
    check::within(heard.room_peak, 0, 8 * kRoom, name + ": the noise of a pause has no click");
    check::within(signal::decibels(heard.speech_rms / loud), -2, 2, name + ": speech keeps its level");
    const Crossing told = cross(row.codec, row.with, kNoise, audio);
    check::equal(told.passed, size_t{0}, name + ": a peer with comfort noise gets no audio in the pause");
    check::within(static_cast<double>(told.told), 4, 15,
                  name + ": a peer with comfort noise gets the level of a pause repeatedly");
    // The level of each run differs by up to 1 dB: -5.5 to -6.7 dB in twenty runs of Opus.
    check::within(signal::decibels(told.room_rms / kRoom), -9, 5,
                  name + ": a peer with comfort noise hears the room at its level");
    std::printf("# %s: the room is heard at %.1f dB, told at %.1f dB of its level\n", row.name,
                signal::decibels(heard.room_rms / kRoom), signal::decibels(told.room_rms / kRoom));
  }
}

/** Drops every tenth packet of speech and returns the distance of the result from the original. The next packet may
 * contain the lost one (RFC 6716 §2.1.7). */
double repaired(bool fec, const std::vector<int16_t>& words, uint64_t& lost) {
  EncoderOptions options;
  options.sample_rate = kRateHz;
  options.fec = fec;
  const auto encoder = find_codec(CodecId::opus)->encoder(options);
  StreamCounters counters;
  DecodePath path(kRateHz, counters);
  std::vector<int16_t> heard;
  for (uint16_t i = 0; i < words.size() / kTick; ++i) {
    uint8_t bytes[1400];
    const int n = encoder->encode(&words[static_cast<size_t>(i * kTick)], kTick, bytes, sizeof bytes);
    const uint64_t now = uint64_t{i} * 20'000;
    if (i % 10 != 7) path.insert(i, i * 960u, CodecId::opus, false, bytes, static_cast<size_t>(n), now);
    int16_t pcm[kTick];
    path.pull(pcm, now + 10'000);
    heard.insert(heard.end(), pcm, pcm + kTick);
  }
  lost = counters.concealed;
  return spectrum::distance_db(words, heard, kRateHz);
}

void forward_error_correction(const std::vector<int16_t>& words) {
  uint64_t lost = 0;
  const double without = repaired(false, words, lost), with = repaired(true, words, lost);
  std::printf("# speech with 10 %% loss: %.2f dB away without FEC, %.2f dB with it\n", without, with);
  check::ok(lost >= 25, "one packet in ten is concealed");
  check::ok(with < without * 0.9, "Opus FEC restores lost packets from the packets after them");
}

}  // namespace

void pause_tests() {
  open_g729(true);
  told();
  sounded();
  relayed();
  relayed_silence_frames();
  const auto words = speech::english();
  if (!check::ok(signal::rms(words) > 200, "espeak-ng produces speech for the pauses")) return;
  silence_of_codecs(words);
  forward_error_correction(words);
}
