// The sending half of a stream: one SSRC, one numbering and one clock, whatever the source of the moment is.
#include <algorithm>
#include <cstdlib>

#include "../codec/g711.h"
#include "stream.h"

namespace media {

/** What the RTP clock shows now, had it run on since the last packet. */
uint32_t Stream::present_ts(uint64_t now_us) const {
  const uint64_t elapsed = std::max<uint64_t>(now_us - last_ts_us_, static_cast<uint64_t>(config_.ptime_ms) * 1000);
  return last_ts_ + static_cast<uint32_t>(elapsed * config_.send.clock_rate / 1'000'000);
}

/** Another source begins: the numbering goes on, the clock moves by the time that has passed, and a marker says so. */
void Stream::splice(Source source, uint64_t now_us) {
  source_ = source;
  marker_next_ = true;
  made_ts_ = present_ts(now_us);
}

void Stream::emit(uint8_t* packet, size_t payload, uint8_t pt, bool marker, uint16_t seq, uint32_t ts,
                  uint64_t now_us) {
  StreamCounters& c = *counted_;
  write_rtp_header(packet, pt, marker || marker_next_, seq, ts, ssrc_);
  marker_next_ = false;
  sent_any_ = true;
  ++sent_packets_;
  sent_octets_ += static_cast<uint32_t>(payload);
  if (static_cast<int32_t>(ts - last_ts_) >= 0) {
    last_ts_ = ts;
    last_ts_us_ = now_us;
  }
  size_t n = kRtpHeader + payload;
  if (pt == send_.payload_type) {
    for (auto& r : record_sent_)
      r.recording->packet_audio(r.track, ssrc_, seq, ts, config_.send.clock_rate, config_.send.codec,
                                packet + kRtpHeader, payload, now_us);
    if (wants_sent_pcm()) {
      if (!sent_decoder_ || sent_codec_ != config_.send.codec) {
        const Codec* codec = find_codec(config_.send.codec);
        sent_codec_ = config_.send.codec;
        sent_decoder_ = codec && codec->available() ? codec->decoder(codec->id == CodecId::opus ? 16000 : 0) : nullptr;
      }
      int16_t pcm[kMaxFrameSamples];
      const int samples =
          sent_decoder_ ? sent_decoder_->decode(packet + kRtpHeader, static_cast<int>(payload), pcm, kMaxFrameSamples)
                        : 0;
      const int block = sent_decoder_ ? sent_decoder_->sample_rate() / 100 : 1;
      if (samples > 0) give_taps(true, pcm, samples / block * block, sent_decoder_->sample_rate());
    }
  }
  if (secured_) {
    n = srtp_tx_ ? srtp_tx_->protect(packet, n) : 0;
    if (n == 0) {
      ++c.send_failed;
      return;
    }
  }
  if (!wire_.send_rtp(packet, n, send_address_)) {
    ++c.send_failed;
    return;
  }
  ++c.packets_sent;
  c.bytes_sent += payload;
  if (context_.counters) ++context_.counters->packets_sent;
}

bool Stream::wants_sent_pcm() const {
  for (const auto& t : taps_)
    if (t.sent) return true;
  return false;
}

void Stream::relay(uint8_t* packet, const RtpView& v, const PayloadFacts& facts, uint64_t now_us) {
  bool again = source_ != Source::relay || relay_split_ || v.ssrc != relay_ssrc_;
  if (!again) {
    const auto steps = static_cast<int16_t>(v.seq - relay_last_seq_);
    const auto ts_step = static_cast<int32_t>(v.ts - relay_last_ts_);
    const auto second = static_cast<int32_t>(facts.clock_rate);
    if (steps > 3000 || steps < -100) again = true;
    // A timestamp far ahead is a pause when as much time has passed, and a jump of the sender's clock when not.
    if (ts_step > second || ts_step < -second) {
      const auto passed = static_cast<int64_t>((now_us - relay_last_us_) * facts.clock_rate / 1'000'000);
      if (std::abs(ts_step - passed) > second) again = true;
    }
  }
  if (again) {
    splice(Source::relay, now_us);
    if (!sent_any_ && !secured_) {
      // Nothing was sent yet: the sender's own numbers and clock do, and so captures of both sides can be laid together.
      // Not in SRTP, where the first number has to be a low one.
      next_seq_ = v.seq;
      made_ts_ = last_ts_ = v.ts;
    }
    relay_split_ = false;
    relay_ssrc_ = v.ssrc;
    relay_seq_off_ = static_cast<uint16_t>(next_seq_ - v.seq);
    relay_ts_off_ = made_ts_ - v.ts;
    relay_last_seq_ = static_cast<uint16_t>(v.seq - 1);
    relay_last_ts_ = v.ts;
  }
  if (static_cast<int16_t>(v.seq - relay_last_seq_) > 0) {
    relay_last_seq_ = v.seq;
    if (facts.kind == PayloadKind::audio) relay_last_ts_ = v.ts;
    relay_last_us_ = now_us;
  }
  const auto seq = static_cast<uint16_t>(v.seq + relay_seq_off_);
  if (static_cast<int16_t>(seq - next_seq_) >= 0) next_seq_ = static_cast<uint16_t>(seq + 1);
  uint8_t* out = packet + v.header - kRtpHeader;
  uint8_t pt = send_.payload_type;
  if (facts.kind == PayloadKind::telephone_event) {
    pt = config_.event.payload_type;
  } else if (facts.kind == PayloadKind::comfort_noise) {
    pt = static_cast<uint8_t>(config_.comfort_noise_pt);
  } else {
    counted_->send_codec = send_.name;
    if (facts.codec != send_.codec) {
      const uint8_t* table = (facts.codec == CodecId::pcmu ? g711().ulaw_to_alaw : g711().alaw_to_ulaw).data();
      uint8_t* payload = packet + v.header;
      uint8_t* const end = payload + v.payload;
      for (; payload + 4 <= end; payload += 4) {
        const uint8_t a = table[payload[0]], b = table[payload[1]], c = table[payload[2]], d = table[payload[3]];
        payload[0] = a;
        payload[1] = b;
        payload[2] = c;
        payload[3] = d;
      }
      for (; payload < end; ++payload) *payload = table[*payload];
    }
  }
  emit(out, v.payload, pt, v.marker, seq, v.ts + relay_ts_off_, now_us);
}

/** A packet of the relayed source stays here: the ones after it close up. */
void Stream::skip_relay(const RtpView& v) {
  if (source_ != Source::relay || v.ssrc != relay_ssrc_ || static_cast<int16_t>(v.seq - relay_last_seq_) <= 0) return;
  relay_last_seq_ = v.seq;
  --relay_seq_off_;
}

/** A key that passes from one clock to another, or between streams that are transcoded. */
void Stream::relay_event(const RtpView& v, const TelephoneEvent& in, const PayloadFacts& facts, uint64_t now_us) {
  const bool fresh = !event_any_ || v.ts != event_in_ts_;
  if (fresh) {
    event_any_ = true;
    event_in_ts_ = v.ts;
    event_out_ts_ = present_ts(now_us);
  }
  TelephoneEvent e = in;
  e.duration = static_cast<uint16_t>(
      std::min<uint64_t>(0xffff, uint64_t{in.duration} * config_.event.clock_rate / std::max(1u, facts.clock_rate)));
  uint8_t packet[kRtpHeader + 4 + kTailRoom];
  write_telephone_event(packet + kRtpHeader, e);
  emit(packet, 4, config_.event.payload_type, fresh, next_seq_++, event_out_ts_, now_us);
  relay_split_ = true;
}

bool Stream::use_encoder() {
  const int rate = encoder_rate();
  if (encoder_ && encoder_codec_ == config_.send.codec && encoder_options_.sample_rate == rate) return true;
  const Codec* codec = find_codec(config_.send.codec);
  if (!codec || !codec->available()) return false;
  encoder_codec_ = codec->id;
  encoder_options_ = {rate,       config_.ptime_ms, config_.bitrate, context_.opus_complexity,
                      config_.fec, config_.dtx};
  encoder_ = codec->encoder(encoder_options_);
  outgoing_.clear();
  outgoing_.reserve(static_cast<size_t>(encoder_->sample_rate() / 1000 * 80));
  return true;
}

void Stream::take_pcm(const int16_t* pcm, int samples, int rate_hz, uint64_t now_us, Heard heard) {
  if (!config_.may_send || !config_.sends || !send_address_.known() || !use_encoder()) return;
  int16_t converted[kMaxFrameSamples];
  if (encoder_->sample_rate() != rate_hz) {
    if (!to_encoder_ || to_encoder_->from() != rate_hz || to_encoder_->to() != encoder_->sample_rate())
      to_encoder_ = std::make_unique<Resampler>(rate_hz, encoder_->sample_rate());
    samples = to_encoder_->run(pcm, samples, converted);
    pcm = converted;
  }
  packetise(pcm, samples, heard, now_us);
}

void Stream::packetise(const int16_t* pcm, int samples, Heard heard, uint64_t now_us) {
  if (source_ != Source::made) {
    outgoing_.clear();
    pause_samples_ = 0;
    pause_reports_.end();
    splice(Source::made, now_us);
    relay_split_ = true;
  }
  outgoing_.insert(outgoing_.end(), pcm, pcm + samples);
  pause_samples_ = heard == Heard::pause ? pause_samples_ + static_cast<size_t>(samples) : 0;
  // Opus has frames of 10, 20, 40 and 60 ms; the two lengths in between are sent as the next shorter one.
  const int ptime = config_.send.codec == CodecId::opus && (config_.ptime_ms == 30 || config_.ptime_ms == 50)
                        ? config_.ptime_ms - 10
                        : config_.ptime_ms;
  const auto frame = static_cast<size_t>(encoder_->sample_rate() / 1000 * ptime);
  const uint32_t step = config_.send.clock_rate / 1000 * static_cast<uint32_t>(ptime);
  while (outgoing_.size() >= frame) {
    if (config_.comfort_noise_pt >= 0 && pause_samples_ >= outgoing_.size()) {
      tell_pause(outgoing_.data(), frame, now_us);
    } else {
      uint8_t packet[kRtpHeader + 1500 + kTailRoom];
      const int bytes = encoder_->encode(outgoing_.data(), static_cast<int>(frame), packet + kRtpHeader, 1400);
      pause_reports_.end();
      if (bytes > 0) {
        counters_->send_codec = config_.send.name;
        emit(packet, static_cast<size_t>(bytes), config_.send.payload_type, false, next_seq_++, made_ts_, now_us);
      } else {
        marker_next_ = true;  // the first packet after a pause (RFC 3551 §4.1)
      }
    }
    outgoing_.erase(outgoing_.begin(), outgoing_.begin() + static_cast<std::ptrdiff_t>(frame));
    pause_samples_ = std::min(pause_samples_, outgoing_.size());
    made_ts_ += step;
  }
}

/** A pause of the sender in comfort noise packets (RFC 3389) instead of encoded noise. */
void Stream::tell_pause(const int16_t* pcm, size_t samples, uint64_t now_us) {
  const int level = pause_reports_.take(pcm, samples, now_us);
  if (level >= 0) {
    uint8_t packet[kRtpHeader + 1 + kTailRoom];
    packet[kRtpHeader] = static_cast<uint8_t>(level);
    marker_next_ = false;
    emit(packet, 1, static_cast<uint8_t>(config_.comfort_noise_pt), false, next_seq_++, made_ts_, now_us);
  }
  marker_next_ = true;
}

/** A relayed sender pauses and the peer takes no comfort noise packets: it is sent the noise itself, until `end_pause`. */
void Stream::sound_pause(const uint8_t* payload, size_t n, uint64_t now_us) {
  if (!pause_.on() && !may_take_relay()) return;
  pause_.set(payload, n);
  start_clock(now_us);
}

void Stream::end_pause() {
  pause_.off();
  if (!clocked_ || has_clocked_source()) return;
  clock_timer_.cancel();
  clocked_ = false;
  source_ = Source::none;
}

}  // namespace media
