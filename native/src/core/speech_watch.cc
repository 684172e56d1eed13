#include "speech_watch.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "stream.h"
#include "tick.h"

namespace media {

namespace {

constexpr int kHz = 8000;
/** The least level of speech, and the level that is speech over any noise, in dBm0. */
constexpr double kLeastDb = -45, kLoudDb = -30;
/** How far speech stands above the noise of the line. */
constexpr double kAboveNoiseDb = 10;
/** The noise is the least level, which rises by 3 dB a second towards the level of the line. */
constexpr double kNoiseRiseDb = 0.03;
/** The energy of differences between samples, relative to that of the samples: 2 in white noise, below 1 in vowels. */
constexpr double kVoicedTilt = 1;
/** Speech pauses after this many steps without voice. Shorter gaps are between sounds of a word. */
constexpr int kPauseSteps = 6;
/** A packet that is this far behind belongs to a new numbering. */
constexpr int kNewNumbering = 200;
/** Audio is missing when none has come for this long; jitter is shorter. */
constexpr uint64_t kMissingUs = 200'000;

/** The level in dBm0 (a full-scale sine has 3.14 dBm0, ITU-T G.711); -90 for digital silence. */
double level_db(double energy, int samples) {
  constexpr double kFullScale = 32'767.0 * 32'767.0;
  return energy == 0 ? -90 : std::max(-90.0, 10 * std::log10(2 * energy / samples / kFullScale) + 3.14);
}

}  // namespace

bool SpeechEdges::voiced(const int16_t* step) {
  double energy = 0, differences = 0;
  for (int at = 0; at < kStep; ++at) {
    const double sample = step[at], difference = sample - last_;
    energy += sample * sample;
    differences += difference * difference;
    last_ = step[at];
  }
  const double level = level_db(energy, kStep);
  const double threshold = std::min(kLoudDb, std::max(kLeastDb, noise_db_ + kAboveNoiseDb));
  noise_db_ = std::min(level, noise_db_ + kNoiseRiseDb);
  return level > threshold && differences < kVoicedTilt * energy;
}

SpeechEdges::Edge SpeechEdges::take(const int16_t* step) {
  const bool now = step && voiced(step);
  recent_ = (recent_ << 1 | (now ? 1 : 0)) & ((uint64_t{1} << among_) - 1);
  quiet_ = now ? 0 : quiet_ + 1;
  const bool speech = now && std::popcount(recent_) >= needed_;
  if (!speaking_) {
    if (!speech) return Edge::none;
    speaking_ = true;
    paused_ = false;
    return Edge::began;
  }
  if (quiet_ >= end_steps_) {
    speaking_ = false;
    recent_ = 0;
    return Edge::ended;
  }
  if (now && paused_) {
    paused_ = false;
    return Edge::resumed;
  }
  if (quiet_ == kPauseSteps) {
    paused_ = true;
    return Edge::paused;
  }
  return speech ? Edge::voiced : Edge::none;
}

const char* SpeechEdges::name(Edge edge) {
  switch (edge) {
    case Edge::began: return "began";
    case Edge::paused: return "paused";
    case Edge::resumed: return "resumed";
    case Edge::ended: return "ended";
    case Edge::voiced:
    case Edge::none: return nullptr;
  }
  return nullptr;
}

Hearing::Hearing(const SpeechWatchOptions& options)
    : edges_(options.onset_ms, options.end_ms),
      quieter_(options.suppress_noise ? std::make_unique<NoiseSuppression>() : nullptr) {}

Hearing::Edges Hearing::take(const int16_t* frame, int16_t* clean) {
  if (quieter_)
    quieter_->take(frame, clean);
  else
    std::copy_n(frame, kFrame, clean);
  Edges edges;
  for (size_t at = 0; at < kSteps; ++at) edges[at] = edges_.take(clean + at * SpeechEdges::kStep);
  return edges;
}

Hearing::Edges Hearing::miss() {
  Edges edges;
  for (auto& edge : edges) edge = edges_.take(nullptr);
  return edges;
}

SpeechWatch::SpeechWatch(Stream& stream, const SpeechWatchOptions& options, uint64_t now_us)
    : stream_(stream), hearing_(options), heard_us_(now_us) {}

bool SpeechWatch::use_codec(CodecId id) {
  if (codec_ && codec_->id == id) return decoder_ != nullptr;
  codec_ = find_codec(id);
  decoder_.reset();
  if (!codec_ || !codec_->available()) return false;
  decoder_ = codec_->decoder(kHz);
  resampler_.reset();
  if (decoder_->sample_rate() != kHz) resampler_ = std::make_unique<Resampler>(decoder_->sample_rate(), kHz);
  return true;
}

void SpeechWatch::packet(uint32_t ssrc, uint16_t seq, CodecId codec, const uint8_t* payload, size_t bytes,
                         uint64_t now_us) {
  const int ahead = static_cast<int16_t>(seq - seq_);
  if (any_ && ssrc == ssrc_ && ahead <= 0 && ahead > -kNewNumbering) return;
  any_ = true;
  ssrc_ = ssrc;
  seq_ = seq;
  heard_us_ = now_us;
  if (!use_codec(codec)) return;
  int16_t decoded[kMaxFrameSamples], converted[kMaxFrameSamples];
  int samples = decoder_->decode(payload, static_cast<int>(bytes), decoded, kMaxFrameSamples);
  if (samples <= 0) return;
  if (!resampler_) return take(decoded, samples);
  samples = resampler_->run(decoded, samples, converted);
  take(converted, samples);
}

void SpeechWatch::tick(uint64_t now_us) {
  if (now_us < heard_us_ + kMissingUs) return;
  heard_us_ += kTickUs;
  holds_ = 0;
  tell(hearing_.miss());
}

void SpeechWatch::take(const int16_t* pcm, int samples) {
  for (int at = 0; at < samples; ++at) {
    held_[holds_++] = pcm[at];
    if (holds_ < held_.size()) continue;
    holds_ = 0;
    int16_t clean[Hearing::kFrame];
    tell(hearing_.take(held_.data(), clean));
  }
}

void SpeechWatch::tell(const Hearing::Edges& edges) {
  for (const auto edge : edges) {
    // The feed stops first, so that its end is reported before the speech that ended it.
    if (SpeechEdges::is_voice(edge)) stream_.sources().yield_to_voice();
    if (const char* name = SpeechEdges::name(edge)) stream_.tell(EventType::speech, hearing_.quiet_ms(), 0, name);
  }
}

}  // namespace media
