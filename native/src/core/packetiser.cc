#include "packetiser.h"

#include <algorithm>
#include <cstring>

#include "conference.h"
#include "stream.h"

namespace media {

namespace {
constexpr int kMostPacketMs = 80;
/** An encoder has settled after this many packets of digital silence. It would then encode the same packet each time.
 */
constexpr int kSettled = 10;
}  // namespace

void Packetiser::describe(const StreamConfig& before, const StreamConfig& next) {
  if (next.encodes_as(before)) return;
  reset_encoder();
  waiting_.clear();
}

int Packetiser::rate() const {
  const CodecId codec = stream_.config().send.codec;
  if (codec != CodecId::opus) {
    const Codec* known = find_codec(codec);
    return known ? known->sample_rate : 8000;
  }
  if (const ConferencePort* port = stream_.sources().conference()) return port->rate_hz;
  // Opus encodes narrowband directly: resampling a telephone's 8 kHz to 48 kHz gains nothing.
  for (const auto* s : stream_.feeders())
    for (const auto& f : s->config().receive)
      if (f.codec == CodecId::pcmu || f.codec == CodecId::pcma || f.codec == CodecId::g729) return 8000;
  return 16000;
}

bool Packetiser::use_encoder() {
  const StreamConfig& config = stream_.config();
  const int hz = rate();
  if (encoder_ && codec_ == config.send.codec && options_.sample_rate == hz) return true;
  const Codec* codec = find_codec(config.send.codec);
  if (!codec || !codec->available()) return false;
  codec_ = codec->id;
  options_ = {hz, config.ptime_ms, config.bitrate, stream_.context().opus_complexity, config.fec, config.dtx};
  encoder_ = codec->encoder(options_);
  end_idle();
  waiting_.clear();
  waiting_.reserve(static_cast<size_t>(encoder_->sample_rate() / 1000 * kMostPacketMs));
  return true;
}

void Packetiser::take(const int16_t* pcm, int samples, int rate_hz, uint64_t now_us, Heard heard) {
  if (!stream_.sender().reaches_peer() || !use_encoder()) return;
  int16_t converted[kMaxFrameSamples];
  if (encoder_->sample_rate() != rate_hz) {
    if (!resampler_ || resampler_->from() != rate_hz || resampler_->to() != encoder_->sample_rate())
      resampler_ = std::make_unique<Resampler>(rate_hz, encoder_->sample_rate());
    samples = resampler_->run(pcm, samples, converted);
    pcm = converted;
  }
  packetise(pcm, samples, heard, now_us);
}

void Packetiser::fill_idle(uint64_t now_us) {
  if (!stream_.sender().reaches_peer() || !use_encoder()) return;
  if (!silence_.empty() && waiting_.empty() && packet_ms() == 20 && stream_.sender().makes_audio())
    return send_settled(now_us);
  packetise(kSilence, encoder_->sample_rate() / 50, Heard::idle, now_us);
}

/** Sends the packet of a settled encoder. Thousands of idle streams do hardly anything else. */
void Packetiser::send_settled(uint64_t now_us) {
  uint8_t packet[kRtpHeader + kMostEncoded + kTailRoom];
  std::memcpy(packet + kRtpHeader, silence_.data(), silence_.size());
  stream_.sender().send_silence(packet, silence_.size(), now_us);
  stream_.sender().advance_made(stream_.config().send.clock_rate / 50);
}

PacketFormat Packetiser::format() const {
  const StreamConfig& config = stream_.config();
  const Codec* codec = find_codec(config.send.codec);
  if (!config.sends || config.dtx || packet_ms() != 20 || !codec || !codec->available()) return {};
  const auto complexity = static_cast<uint8_t>(stream_.context().opus_complexity);
  return {codec->id, static_cast<uint8_t>(rate() / 1000), complexity, config.fec, config.bitrate};
}

void Packetiser::take_mix(const Mix& mix, int rate_hz, uint64_t now_us) {
  Sender& sender = stream_.sender();
  const bool fits = !mix.packet.empty() && mix.format == format() && (waiting_.empty() || !sender.makes_audio());
  if (!fits) return take(mix.pcm.data(), rate_hz / 50, rate_hz, now_us);
  if (!sender.reaches_peer()) return;
  if (!sender.makes_audio()) begin(now_us);
  if (idle_frames_ > 0) sender.mark_next();
  reset_encoder();  // the peer's decoder no longer follows it
  uint8_t packet[kRtpHeader + kMostEncoded + kTailRoom];
  std::memcpy(packet + kRtpHeader, mix.packet.data(), mix.packet.size());
  sender.send_made(packet, mix.packet.size(), now_us);
  sender.advance_made(stream_.config().send.clock_rate / 50);
}

int Packetiser::packet_ms() const {
  const StreamConfig& config = stream_.config();
  // Opus has frames of 10, 20, 40 and 60 ms. For 30 and 50 ms use the next shorter one.
  const bool between = config.send.codec == CodecId::opus && (config.ptime_ms == 30 || config.ptime_ms == 50);
  return between ? config.ptime_ms - 10 : config.ptime_ms;
}

/** Begins a new run of audio after another source. */
void Packetiser::begin(uint64_t now_us) {
  waiting_.clear();
  tail_samples_ = 0;
  pause_reports_.end();
  stream_.sender().begin_made(now_us);
}

void Packetiser::packetise(const int16_t* pcm, int samples, Heard heard, uint64_t now_us) {
  Sender& sender = stream_.sender();
  const StreamConfig& config = stream_.config();
  if (!sender.makes_audio()) begin(now_us);
  waiting_.insert(waiting_.end(), pcm, pcm + samples);
  tail_samples_ = (heard == tail_ ? tail_samples_ : 0) + static_cast<size_t>(samples);
  tail_ = heard;
  const int ms = packet_ms();
  const auto frame = static_cast<size_t>(encoder_->sample_rate() / 1000 * ms);
  const uint32_t step = config.send.clock_rate / 1000 * static_cast<uint32_t>(ms);
  while (waiting_.size() >= frame) {
    const Heard next = next_frame();
    if (next == Heard::idle)
      send_silence(frame, now_us);
    else if (next == Heard::pause && config.comfort_noise_pt >= 0)
      tell_pause(frame, now_us);
    else
      send_frame(frame, now_us);
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(frame));
    tail_samples_ = std::min(tail_samples_, waiting_.size());
    sender.advance_made(step);
  }
}

int Packetiser::encode(size_t samples, uint8_t* out) {
  return encoder_->encode(waiting_.data(), static_cast<int>(samples), out, kMostEncoded);
}

void Packetiser::send_frame(size_t samples, uint64_t now_us) {
  uint8_t packet[kRtpHeader + kMostEncoded + kTailRoom];
  const int bytes = encode(samples, packet + kRtpHeader);
  pause_reports_.end();
  if (idle_frames_ > 0) stream_.sender().mark_next();  // a talk spurt begins
  end_idle();
  if (bytes > 0)
    stream_.sender().send_made(packet, static_cast<size_t>(bytes), now_us);
  else
    stream_.sender().mark_next();  // mark the first packet after a pause (RFC 3551 §4.1)
}

/** Sends silence for as long as the stream is idle. Repeats the packet of a settled encoder instead of encoding it
 * again, because thousands of streams may be idle. An encoder with DTX goes on: it sends hardly anything. */
void Packetiser::send_silence(size_t samples, uint64_t now_us) {
  uint8_t packet[kRtpHeader + kMostEncoded + kTailRoom];
  pause_reports_.end();
  auto bytes = static_cast<int>(silence_.size());
  if (bytes > 0)
    std::memcpy(packet + kRtpHeader, silence_.data(), silence_.size());
  else
    bytes = encode(samples, packet + kRtpHeader);
  if (idle_frames_ < kSettled && ++idle_frames_ == kSettled && bytes > 0 && !options_.dtx)
    silence_.assign(packet + kRtpHeader, packet + kRtpHeader + bytes);
  if (bytes > 0)
    stream_.sender().send_silence(packet, static_cast<size_t>(bytes), now_us);
  else
    stream_.sender().mark_next();
}

/** Sends a pause as comfort noise packets (RFC 3389) instead of encoded noise. */
void Packetiser::tell_pause(size_t samples, uint64_t now_us) {
  const int level = pause_reports_.take(waiting_.data(), samples, now_us);
  if (level >= 0) stream_.sender().send_noise(static_cast<uint8_t>(level), now_us);
  stream_.sender().mark_next();
}

}  // namespace media
