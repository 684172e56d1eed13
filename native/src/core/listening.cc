#include "listening.h"

#include <utility>

#include "conference.h"
#include "stream.h"
#include "tick.h"

namespace media {

namespace {
/** The rate of the detector's audio. */
constexpr int kDetectorHz = 8000;
}  // namespace

Listening::Listening(Stream& stream) : stream_(stream) {
  timer_.bind([](void* s, uint64_t now) { static_cast<Listening*>(s)->tick(now); }, this);
}

void Listening::detect(bool inband, bool voice, bool tones, uint64_t now_us) {
  inband_ = inband;
  voice_ = voice;
  tones_ = tones;
  detector_.reset();
  update(now_us);
}

void Listening::watch_speech(const SpeechWatchOptions* options, uint64_t now_us) {
  watch_ = options ? std::make_unique<SpeechWatch>(stream_, *options, now_us) : nullptr;
  update(now_us);
}

bool Listening::is_heard() const {
  return detector_ || watch_ || stream_.sources().conference() || stream_.sender().taps().any();
}

bool Listening::is_needed() const {
  if (detects() || watch_ || stream_.sources().conference() || stream_.sender().taps().wants_received()) return true;
  const Stream* peer = stream_.peer();
  if (!peer || !peer->config().sends) return false;
  const PayloadFacts& out = peer->config().send;
  if (out.codec == CodecId::other) return false;
  if (repacks_) return true;
  for (const auto& f : stream_.config().receive)
    if (f.kind == PayloadKind::audio && f.codec != CodecId::other && !f.passes_as(out)) return true;
  return false;
}

/** Returns the rate that the main consumer of the audio needs, so that it is not resampled twice. */
int Listening::rate() const {
  if (const ConferencePort* port = stream_.sources().conference()) return port->rate_hz;
  if (const Stream* peer = stream_.peer(); peer && peer->config().sends) {
    const Codec* codec = find_codec(peer->config().send.codec);
    if (codec && codec->sample_rate != 8000) return peer->packetiser().rate();
  }
  const int wideband = stream_.sender().taps().wideband_rate();
  return wideband ? wideband : 8000;
}

void Listening::update(uint64_t now_us) {
  if (const Stream* peer = stream_.peer(); !peer || peer->config().max_ptime_ms == 0) repacks_ = false;
  if (!is_needed() || stream_.closed()) return stop();
  Receiver& receiver = stream_.receiver();
  const int hz = rate();
  if (!receiver.decode_path() || receiver.decode_path()->rate() != hz)
    receiver.decode_by(std::make_unique<DecodePath>(hz, stream_.counters()));
  if (detects() && !detector_) detector_ = std::make_unique<Detector>();
  if (!detects()) detector_.reset();
  to_detector_ = detects() && hz != kDetectorHz ? std::make_unique<Resampler>(hz, kDetectorHz) : nullptr;
  if (timer_.armed()) return;
  due_us_ = now_us + kTickUs;
  stream_.context().wheel.set(timer_, due_us_);
}

void Listening::stop() {
  stream_.receiver().decode_by(nullptr);
  timer_.cancel();
}

void Listening::tick(uint64_t now_us) {
  DecodePath* path = stream_.receiver().decode_path();
  if (!path) return;
  ThreadContext& context = stream_.context();
  if (now_us > due_us_ + kLostUs) {
    if (context.counters) ++context.counters->late_ticks;
    due_us_ = now_us;
  }
  due_us_ += kTickUs;
  context.wheel.set(timer_, due_us_);
  int16_t pcm[kMostTick];
  const int hz = path->rate(), n = hz / 50;
  const Heard heard = path->pull(pcm, now_us);
  if (ConferencePort* port = stream_.sources().conference()) port->in.write(pcm, static_cast<size_t>(n));
  stream_.sender().taps().take(stream_, false, pcm, n, hz);
  if (detector_) hear(pcm, n, now_us);
  if (watch_) watch_->tick(now_us);
  transcode(pcm, n, hz, heard, now_us);
}

/** Reports speech, keys and tones in the audio. */
void Listening::hear(const int16_t* pcm, int samples, uint64_t now_us) {
  int16_t narrow[kMostTick];
  if (to_detector_) {
    samples = to_detector_->run(pcm, samples, narrow);
    pcm = narrow;
  }
  if (voice_ && detector_->voice.take(pcm, samples, kDetectorHz)) {
    Event e = stream_.event_of(EventType::voice);
    e.flag = detector_->voice.speaking();
    e.a = detector_->voice.lasted_ms();
    stream_.tell(std::move(e));
  }
  if (inband_) {
    char digits[8];
    const int got = detector_->keys(pcm, samples, digits, sizeof digits);
    for (int i = 0; i < got; ++i) stream_.receiver().keys().heard(digits[i], now_us);
  }
  if (tones_) {
    const int tone = detector_->fax(pcm, samples);
    if (tone) stream_.tell(EventType::tone, tone, 0, tone == 1 ? "cng" : "ced");
  }
}

/** Passes the audio to the peer's encoder when the packets cannot be relayed. */
void Listening::transcode(const int16_t* pcm, int samples, int rate_hz, Heard heard, uint64_t now_us) {
  Stream* peer = stream_.peer();
  if (!peer || !stream_.receiver().transcodes()) return;
  peer->sources().interrupt_pause();
  if (!peer->sender().may_take_relay() || peer->config().send.codec == CodecId::other) return;
  if (heard != Heard::nothing)
    peer->packetiser().take(pcm, samples, rate_hz, now_us, heard);
  else
    peer->sender().end_made();
}

}  // namespace media
