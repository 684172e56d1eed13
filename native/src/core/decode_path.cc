#include "decode_path.h"

#include <algorithm>
#include <cstring>

namespace media {

namespace {
constexpr int kStepMs = 20;  // between two calls of pull()
constexpr int kLeastTargetMs = 20, kMostTargetMs = 200;
/** A packet that is at least this far behind means that the sender restarted its numbering. */
constexpr int kJump = 200;
/** After this long without a packet, playing stops until the buffer has filled again. */
constexpr int kMostEmptyMs = 60;
constexpr int kObservedMs = 1000;
constexpr uint64_t kCalmUs = 10'000'000;
}  // namespace

DecodePath::DecodePath(int rate_hz, StreamCounters& counters)
    : rate_(rate_hz),
      counters_(counters),
      slots_(kSlots),
      bytes_(kSlots * kSlotBytes),
      decoded_(kMaxFrameSamples),
      converted_(kMaxFrameSamples) {
  fifo_.reserve(2 * kMaxFrameSamples);
}

void DecodePath::reset() {
  for (auto& s : slots_) s.used = false;
  held_ = 0;
  any_ = playing_ = may_pause_ = pausing_ = false;
  pause_tail_ = 0;
  noise_.off();
  insert_ms_ = 0;
}

bool DecodePath::use_codec(CodecId id) {
  if (codec_ && codec_->id == id) return decoder_ != nullptr;
  codec_ = find_codec(id);
  decoder_.reset();
  if (!codec_ || !codec_->available()) return false;
  // Opus decodes at any rate. Other codecs need a resampler.
  decoder_ = codec_->decoder(rate_);
  resampler_.reset();
  if (decoder_->sample_rate() != rate_) resampler_ = std::make_unique<Resampler>(decoder_->sample_rate(), rate_);
  return true;
}

void DecodePath::insert(uint16_t seq, uint32_t ts, CodecId codec, bool comfort_noise, const uint8_t* payload,
                        size_t bytes, uint64_t now_us) {
  if (bytes > kSlotBytes || bytes == 0) return;
  if (any_ && !take_in_time(seq, now_us)) return;
  if (!any_) {
    any_ = true;
    next_ = newest_ = seq;
    newest_ts_ = ts;
  }
  Slot& s = slot(seq);
  if (s.used && s.seq == seq) return;
  if (!s.used) ++held_;
  s = {true, comfort_noise, codec, seq, static_cast<uint16_t>(bytes), ts, now_us};
  std::memcpy(data(seq), payload, bytes);
  if (static_cast<int16_t>(seq - newest_) > 0) {
    newest_ = seq;
    newest_ts_ = ts;
  }
}

/** Makes room for a packet. False when the packet is too late to play. */
bool DecodePath::take_in_time(uint16_t seq, uint64_t now_us) {
  const auto ahead = static_cast<int16_t>(seq - next_);
  if (ahead >= kSlots || ahead <= -kJump) reset();
  if (!any_ || ahead >= 0) return true;
  const bool fits = static_cast<int16_t>(seq - newest_) > -kSlots && held_ < kSlots - 1 &&
                    static_cast<uint16_t>(newest_ - seq) < kSlots;
  if (!playing_ && fits) {
    next_ = seq;  // playing has not begun, so an earlier packet may still become the first
    return true;
  }
  ++counters_.late;
  // Expect later packets to be as late: grow the buffer by one step.
  const int more = std::min(kMostTargetMs, target_ms_ + kStepMs) - target_ms_;
  target_ms_ += more;
  insert_ms_ += more;
  calm_since_us_ = now_us;
  return false;
}

int DecodePath::ahead_ms() const {
  if (!codec_ || held_ == 0) return 0;
  const int64_t units = static_cast<int32_t>(newest_ts_ - expected_ts_);
  return static_cast<int>(std::clamp<int64_t>(units * 1000 / codec_->clock_rate, -10'000, 10'000)) + frame_ms_;
}

/** Starts playing when the oldest packet has waited for the target delay. */
bool DecodePath::start(uint64_t now_us) {
  if (held_ == 0) return false;
  while (!(slot(next_).used && slot(next_).seq == next_)) ++next_;
  const Slot& s = slot(next_);
  if (now_us + 1000 < s.at_us + static_cast<uint64_t>(target_ms_) * 1000) return false;
  playing_ = true;
  expected_ts_ = s.ts;
  empty_ms_ = 0;
  least_ahead_ms_ = kObservedMs;
  observed_ms_ = 0;
  return true;
}

void DecodePath::append(const int16_t* pcm, int samples, bool pause) {
  if (resampler_) {
    samples = resampler_->run(pcm, samples, converted_.data());
    pcm = converted_.data();
  }
  fifo_.insert(fifo_.end(), pcm, pcm + samples);
  // The first piece of a pause counts as sound, because the resampler's delay moves the end of the sound into it.
  pause_tail_ = pause && pausing_ ? std::min(pause_tail_ + static_cast<size_t>(samples), fifo_.size()) : 0;
  pausing_ = pause;
}

void DecodePath::fill(int ms, const Slot* next) {
  const int samples = ms * (decoder_ ? decoder_->sample_rate() : rate_) / 1000;
  if (noise_.on())
    noise_.fill(decoded_.data(), samples, decoder_ ? decoder_->sample_rate() : rate_, rate_);
  else if (decoder_)
    decoder_->conceal(decoded_.data(), samples, next ? data(next->seq) : nullptr, next ? next->bytes : 0);
  else
    std::memset(decoded_.data(), 0, static_cast<size_t>(samples) * 2);
  append(decoded_.data(), samples, noise_.on() || may_pause_);
}

void DecodePath::play(Slot& s) {
  s.used = false;
  --held_;
  next_ = static_cast<uint16_t>(s.seq + 1);
  if (s.noise) {
    noise_.set(data(s.seq), s.bytes);
    may_pause_ = true;
    fill(20, nullptr);
    expected_ts_ = s.ts + static_cast<uint32_t>((codec_ ? codec_->clock_rate : 8000) / 50);
    return;
  }
  if (!use_codec(s.codec)) return;
  noise_.off();
  const int samples = decoder_->decode(data(s.seq), s.bytes, decoded_.data(), kMaxFrameSamples);
  if (samples <= 0) {
    ++counters_.malformed;
    return;
  }
  const auto tells = decoder_->tells(data(s.seq), s.bytes);
  // Within a pause, a packet without voice only refreshes the noise (Opus sends one every 400 ms).
  const bool pause = tells == Decoder::Tells::silence || (tells == Decoder::Tells::no_voice && pausing_);
  may_pause_ = tells != Decoder::Tells::voice;
  frame_ms_ = std::max(1, samples * 1000 / decoder_->sample_rate());
  expected_ts_ =
      s.ts + static_cast<uint32_t>(static_cast<int64_t>(samples) * codec_->clock_rate / decoder_->sample_rate());
  append(decoded_.data(), samples, pause);
}

Heard DecodePath::pull(int16_t* out, uint64_t now_us) {
  Heard heard = Heard::sound;
  while (fifo_.size() < frame()) {
    if (playing_ || start(now_us)) {
      produce();
      continue;
    }
    empty_ms_ += kStepMs;
    if (may_pause_ || noise_.on()) {
      fill(kStepMs, nullptr);
    } else {
      fifo_.insert(fifo_.end(), frame(), 0);
      heard = Heard::nothing;
    }
    break;
  }
  if (playing_) adapt(now_us);
  counters_.jitter_buffer_ms = target_ms_;
  if (heard == Heard::sound && pause_tail_ >= fifo_.size()) heard = Heard::pause;
  std::memcpy(out, fifo_.data(), frame() * sizeof *out);
  drop_frame();
  return heard;
}

void DecodePath::drop_frame() {
  fifo_.erase(fifo_.begin(), fifo_.begin() + static_cast<std::ptrdiff_t>(frame()));
}

/** Appends audio to the FIFO: the next packet's, or a substitute when it is missing. */
void DecodePath::produce() {
  if (insert_ms_ >= kStepMs) {
    insert_ms_ -= kStepMs;
    ++counters_.concealed;
    return fill(kStepMs, nullptr);
  }
  Slot& s = slot(next_);
  if (s.used && s.seq == next_) {
    if (fill_pause(s)) return;
    empty_ms_ = 0;
    return play(s);
  }
  if (held_ > 0) return bridge_loss();
  run_empty();
}

/** Fills the pause before a packet that is next in sequence but whose timestamp is later than expected. */
bool DecodePath::fill_pause(const Slot& s) {
  const auto gap = static_cast<int32_t>(s.ts - expected_ts_);
  const int clock = codec_ ? codec_->clock_rate : 8000;
  if (gap < clock / 100 || gap >= clock * 2) return false;
  const int ms = static_cast<int>(std::min<int64_t>(kStepMs, int64_t{gap} * 1000 / clock));
  fill(ms, nullptr);
  expected_ts_ += static_cast<uint32_t>(ms * clock / 1000);
  return true;
}

/** Conceals a packet that is lost or too late. Skips numbers that had no audio by the clock of the sender: those of a
 * key during which it sent audio. */
void DecodePath::bridge_loss() {
  auto later = static_cast<uint16_t>(next_ + 1);
  while (!(slot(later).used && slot(later).seq == later)) ++later;
  if (codec_ && static_cast<int32_t>(slot(later).ts - expected_ts_) < codec_->clock_rate / 100) {
    next_ = later;
    return;
  }
  const bool last_missing = later == static_cast<uint16_t>(next_ + 1);
  ++counters_.concealed;
  fill(frame_ms_, last_missing ? &slot(later) : nullptr);
  if (codec_) expected_ts_ += static_cast<uint32_t>(frame_ms_ * codec_->clock_rate / 1000);
  ++next_;
}

/** Conceals 20 ms when the buffer is empty because the sender pauses or the network stalls. */
void DecodePath::run_empty() {
  empty_ms_ += kStepMs;
  if (empty_ms_ > kMostEmptyMs) playing_ = false;
  if (!may_pause_) ++counters_.concealed;
  fill(kStepMs, nullptr);
  if (codec_ && !may_pause_) insert_ms_ = 0;
}

/** Shortens the delay once a second. Drops a frame when the buffer holds more than its target. Lowers the target when
 * no packet has been late for a while. */
void DecodePath::adapt(uint64_t now_us) {
  least_ahead_ms_ = std::min(least_ahead_ms_, ahead_ms());
  observed_ms_ += kStepMs;
  if (observed_ms_ < kObservedMs) return;
  // The buffer held too much for the whole second: a burst followed a stall, or the sender's clock is fast.
  if (least_ahead_ms_ > target_ms_ + 2 * frame_ms_) {
    const bool plenty = fifo_.size() >= 2 * frame();
    if (!plenty && slot(next_).used) play(slot(next_));
    if (fifo_.size() >= 2 * frame()) drop_frame();
  }
  least_ahead_ms_ = kObservedMs;
  observed_ms_ = 0;
  if (now_us - calm_since_us_ <= kCalmUs || target_ms_ <= kLeastTargetMs) return;
  target_ms_ -= 10;
  calm_since_us_ = now_us;
}

}  // namespace media
