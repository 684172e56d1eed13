// Where a stream is decoded: for a transcoding peer, for what listens to it, for a conference.
#include <algorithm>

#include "conference.h"
#include "stream.h"

namespace media {

bool Stream::needs_decoding() const {
  if (detect_inband_ || detect_voice_ || detect_tones_ || conference_) return true;
  for (const auto& t : taps_)
    if (!t.sent) return true;
  if (!peer_ || !peer_->config_.sends || peer_->config_.send.codec == CodecId::other) return false;
  for (const auto& f : config_.receive)
    if (f.kind == PayloadKind::audio && f.codec != CodecId::other && !f.passes_as(peer_->config_.send)) return true;
  return false;
}

/** The rate that what follows wants, so that nothing is converted twice. */
int Stream::decode_rate() const {
  if (conference_) return conference_->rate_hz;
  if (peer_ && peer_->config_.sends) {
    if (peer_->config_.send.codec == CodecId::g722) return 16000;
    if (peer_->config_.send.codec == CodecId::opus) return peer_->encoder_rate();
  }
  for (const auto& t : taps_)
    if (!t.sent && t.rate_hz > 8000) return t.rate_hz;
  return 8000;
}

int Stream::encoder_rate() {
  if (config_.send.codec == CodecId::g722) return 16000;
  if (config_.send.codec != CodecId::opus) return 8000;
  if (conference_) return conference_->rate_hz;
  // Opus takes narrowband as it is: nothing is gained by encoding 48 kHz of a telephone's 8.
  for (const auto* s : sources_)
    for (const auto& f : s->config_.receive)
      if (f.codec == CodecId::pcmu || f.codec == CodecId::pcma || f.codec == CodecId::g729) return 8000;
  return 16000;
}

void Stream::update_decoding(uint64_t now_us) {
  if (!needs_decoding() || closed_) {
    decode_.reset();
    decode_timer_.cancel();
    return;
  }
  const int rate = decode_rate();
  if (!decode_ || decode_->rate() != rate) decode_ = std::make_unique<DecodePath>(rate, *counters_);
  const bool detects = detect_inband_ || detect_voice_ || detect_tones_;
  if (detects && !detector_) detector_ = std::make_unique<Detector>();
  if (!detects) detector_.reset();
  to_detector_ = detects && rate != 8000 ? std::make_unique<Resampler>(rate, 8000) : nullptr;
  if (!decode_timer_.armed()) {
    decode_due_us_ = now_us + 20'000;
    context_.wheel.set(decode_timer_, decode_due_us_);
  }
}

void Stream::decode_tick(uint64_t now_us) {
  if (!decode_) return;
  if (now_us > decode_due_us_ + 100'000) {
    if (context_.counters) ++context_.counters->late_ticks;
    decode_due_us_ = now_us;
  }
  decode_due_us_ += 20'000;
  context_.wheel.set(decode_timer_, decode_due_us_);
  int16_t pcm[960];
  const int rate = decode_->rate(), n = rate / 50;
  const Heard heard = decode_->pull(pcm, now_us);
  if (conference_) conference_->in.write(pcm, static_cast<size_t>(n));
  give_taps(false, pcm, n, rate);
  if (detector_) {
    int16_t narrow[960];
    const int16_t* audio = pcm;
    int m = n;
    if (to_detector_) {
      m = to_detector_->run(pcm, n, narrow);
      audio = narrow;
    }
    if (detect_voice_ && detector_->voice.take(audio, m, 8000)) {
      Event e;
      e.type = EventType::voice;
      e.stream = id_;
      e.flag = detector_->voice.speaking();
      e.a = detector_->voice.lasted_ms();
      context_.events.push(std::move(e));
    }
    char digits[8];
    if (detect_inband_) {
      const int got = detector_->keys(audio, m, digits, 8);
      // Not again when the same key came as an event: then the tone is only its echo in the audio.
      for (int i = 0; i < got && !keys_in_.pressed(); ++i) told_key({digits[i], 50}, true, now_us);
    }
    if (detect_tones_) {
      const int tone = detector_->fax(audio, m);
      if (tone) event(EventType::tone, tone, 0, tone == 1 ? "cng" : "ced");
    }
  }
  if (!transcoding_ || !peer_) return;
  if (peer_->pause_.on()) peer_->end_pause();
  if (!peer_->may_take_relay() || peer_->config_.send.codec == CodecId::other) return;
  if (heard != Heard::nothing)
    peer_->take_pcm(pcm, n, rate, now_us, heard);
  else if (peer_->source_ == Source::made)
    peer_->source_ = Source::none;
}

void Stream::give_taps(bool sent, const int16_t* pcm, int samples, int rate_hz) {
  for (auto& t : taps_) {
    if (t.sent != sent) continue;
    if (!t.resampler || t.resampler->from() != rate_hz) t.resampler = std::make_unique<Resampler>(rate_hz, t.rate_hz);
    int16_t converted[kMaxFrameSamples];
    const int n = t.resampler->run(pcm, samples, converted);
    t.held.insert(t.held.end(), converted, converted + n);
    while (t.held.size() >= t.chunk) {
      Event e;
      e.type = EventType::tap;
      e.stream = id_;
      e.id = t.id;
      e.a = static_cast<int64_t>(t.emitted * 1000 / static_cast<uint64_t>(t.rate_hz));
      e.samples.assign(t.held.begin(), t.held.begin() + static_cast<std::ptrdiff_t>(t.chunk));
      t.held.erase(t.held.begin(), t.held.begin() + static_cast<std::ptrdiff_t>(t.chunk));
      t.emitted += t.chunk;
      context_.events.push(std::move(e));
    }
  }
}

}  // namespace media
