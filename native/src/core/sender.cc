#include "sender.h"

#include <sys/random.h>

#include <algorithm>
#include <cstdlib>

#include "../codec/g711.h"
#include "stream.h"

namespace media {

namespace {
/** Relayed sequence numbers continue across a gap of up to kMostAhead packets and a packet up to kMostBehind late. A
 * larger jump starts a new numbering. */
constexpr int kMostAhead = 3000, kMostBehind = -100;

/** Returns the bytes of a millisecond of audio in ten; 0 for a codec whose packets have no fixed size. */
int bytes_of_ten_ms(CodecId codec) {
  if (codec == CodecId::g729) return 10;
  return codec == CodecId::pcmu || codec == CodecId::pcma || codec == CodecId::g722 ? 80 : 0;
}

/** Converts PCMU to PCMA or back, in place. */
void convert_g711(CodecId from, uint8_t* payload, size_t n) {
  const uint8_t* table = (from == CodecId::pcmu ? g711().ulaw_to_alaw : g711().alaw_to_ulaw).data();
  uint8_t* const end = payload + n;
  for (; payload + 4 <= end; payload += 4) {
    const uint8_t a = table[payload[0]], b = table[payload[1]], c = table[payload[2]], d = table[payload[3]];
    payload[0] = a;
    payload[1] = b;
    payload[2] = c;
    payload[3] = d;
  }
  for (; payload < end; ++payload) *payload = table[*payload];
}
}  // namespace

uint32_t random32() {
  uint32_t v = 0;
  while (getrandom(&v, sizeof v, 0) != static_cast<ssize_t>(sizeof v)) {
  }
  return v;
}

Sender::Sender(Stream& stream, StreamCounters& counted, Wire& wire, ThreadContext& context, uint64_t now_us)
    : SenderLines(counted, wire, context), stream_(stream) {
  ssrc_ = random32();
  // Start below 2^15: a receiver then detects the first roll-over (RFC 3711 §3.3.1) even if it loses earlier packets.
  next_seq_ = static_cast<uint16_t>(random32() & 0x7fff);
  last_ts_ = random32();
  last_ts_us_ = now_us;
}

void Sender::describe(const StreamConfig& before, const StreamConfig& next) {
  if (!(next.remote_rtp == before.remote_rtp)) address_ = next.remote_rtp;
  // The numbers go on while the stream is not secured. The context stays, so that no index is used twice with its key.
  if (next.secured && (!srtp_ || !srtp_->same_key(next.suite, next.send_key.data(), next.send_key.size())))
    srtp_ = SrtpContext::make(next.suite, next.send_key.data(), next.send_key.size());
  if (!next.encodes_as(before)) {
    relay_split_ = true;
    end_made();
  }
  if (next.may_send && !before.may_send) relay_split_ = true;
  sends_ = next.sends;
  may_send_ = next.may_send;
  secured_ = next.secured;
  format_ = next.send;
  most_bytes_ = static_cast<uint16_t>(std::clamp(next.max_ptime_ms, 0, 200) * bytes_of_ten_ms(next.send.codec) / 10);
}

// The clock

uint32_t Sender::clock_now(uint64_t now_us) const {
  return last_ts_ + static_cast<uint32_t>((now_us - last_ts_us_) * format_.clock_rate / 1'000'000);
}

/** Returns the timestamp of a packet that begins now: at least one packet length after the last one. */
uint32_t Sender::next_ts(uint64_t now_us) const {
  const uint64_t least_us = static_cast<uint64_t>(stream_.config().ptime_ms) * 1000;
  const uint64_t elapsed = std::max<uint64_t>(now_us - last_ts_us_, least_us);
  return last_ts_ + static_cast<uint32_t>(elapsed * format_.clock_rate / 1'000'000);
}

/** Switches to another source: the numbering continues, the clock advances by the elapsed time, and the next packet has
 * the marker. */
void Sender::splice(Source source, uint64_t now_us) {
  source_ = source;
  marker_next_ = true;
  made_ts_ = next_ts(now_us);
}

// Each packet

/** Writes the header and notes the numbers of the packet. */
void Sender::address_packet(uint8_t* packet, size_t payload, uint8_t pt, bool marker, uint16_t seq, uint32_t ts,
                            uint64_t now_us) {
  write_rtp_header(packet, pt, marker || marker_next_, seq, ts, ssrc_);
  marker_next_ = false;
  sent_any_ = true;
  ++sent_packets_;
  sent_octets_ += static_cast<uint32_t>(payload);
  // The later packets of a key have the timestamp of its start.
  if (static_cast<int32_t>(ts - last_ts_) > 0) {
    last_ts_ = ts;
    last_ts_us_ = now_us;
  }
}

/** Protects the packet and passes it to the wire. */
void Sender::hand_over(uint8_t* packet, size_t payload) {
  StreamCounters& c = counted_;
  size_t n = kRtpHeader + payload;
  if (secured_) {
    n = srtp_ ? srtp_->protect(packet, n) : 0;
    if (n == 0) {
      ++c.send_failed;
      return;
    }
  }
  if (!wire_.send_rtp(packet, n, address_)) {
    ++c.send_failed;
    return;
  }
  ++c.packets_sent;
  c.bytes_sent += payload;
  if (context_.counters) ++context_.counters->packets_sent;
}

void Sender::emit(uint8_t* packet, size_t payload, uint8_t pt, bool marker, uint16_t seq, uint32_t ts,
                  uint64_t now_us) {
  address_packet(packet, payload, pt, marker, seq, ts, now_us);
  if (pt == format_.payload_type) copy_audio(packet + kRtpHeader, payload, seq, ts, now_us);
  hand_over(packet, payload);
}

/** Copies sent audio to recordings and taps. */
void Sender::copy_audio(const uint8_t* payload, size_t bytes, uint16_t seq, uint32_t ts, uint64_t now_us) {
  for (auto& r : recordings_)
    r.recording->packet_audio(r.track, ssrc_, seq, ts, format_.clock_rate, format_.codec, payload, bytes, now_us);
  if (taps_.wants_sent()) give_taps(payload, bytes, ts, now_us);
}

void Sender::give_taps(const uint8_t* payload, size_t bytes, uint32_t ts, uint64_t now_us) {
  if (!tap_decoder_ || tap_codec_ != format_.codec) {
    const Codec* codec = find_codec(format_.codec);
    tap_codec_ = format_.codec;
    tap_decoder_ = codec && codec->available() ? codec->decoder(codec->id == CodecId::opus ? 16000 : 0) : nullptr;
  }
  if (!tap_decoder_) return;
  int16_t pcm[kMaxFrameSamples];
  const int samples = tap_decoder_->decode(payload, static_cast<int>(bytes), pcm, kMaxFrameSamples);
  if (samples <= 0) return;
  const int rate = tap_decoder_->sample_rate(), block = rate / 100;
  // Our clock goes on while nothing is sent, and stands while packets that were held up come at once.
  const auto ahead = static_cast<int32_t>(ts - tap_ts_);
  const uint64_t clock = std::max(1u, format_.clock_rate);
  if (!tapped_)
    taps_.pause(stream_, UINT64_MAX, now_us);
  else if (ahead > 0)
    taps_.pause(stream_, static_cast<uint64_t>(ahead) * 1'000'000 / clock, now_us);
  tapped_ = true;
  tap_ts_ = ts + static_cast<uint32_t>(static_cast<uint64_t>(samples) * clock / static_cast<uint64_t>(rate));
  taps_.take(stream_, true, pcm, samples / block * block, rate);
}

// Relaying

/** Reports whether a packet continues the numbering of the last relayed packet of its source. */
bool Sender::continues_relay(const RtpView& v, const PayloadFacts& facts, uint64_t now_us) const {
  if (source_ != Source::relay || relay_split_ || v.ssrc != relay_ssrc_) return false;
  const auto steps = static_cast<int16_t>(v.seq - relay_last_seq_);
  if (steps > kMostAhead || steps < kMostBehind) return false;
  const auto ts_step = static_cast<int32_t>(v.ts - relay_last_ts_);
  const auto second = static_cast<int32_t>(facts.clock_rate);
  if (ts_step <= second && ts_step >= -second) return true;
  // A timestamp far ahead is a pause if as much time has passed. Otherwise the sender's clock has jumped.
  const auto passed = static_cast<int64_t>((now_us - relay_last_us_) * facts.clock_rate / 1'000'000);
  return std::abs(ts_step - passed) <= second;
}

void Sender::begin_relay(const RtpView& v, uint64_t now_us) {
  splice(Source::relay, now_us);
  if (!sent_any_ && !secured_) {
    // Keep the sender's numbers and clock, so that captures of both sides can be compared. SRTP needs a low first
    // number instead.
    next_seq_ = v.seq;
    made_ts_ = last_ts_ = v.ts;
    last_ts_us_ = now_us;
  }
  relay_split_ = false;
  relay_ssrc_ = v.ssrc;
  relay_seq_off_ = static_cast<uint16_t>(next_seq_ - v.seq);
  relay_ts_off_ = made_ts_ - v.ts;
  relay_last_seq_ = static_cast<uint16_t>(v.seq - 1);
  relay_last_ts_ = v.ts;
  relay_last_us_ = now_us;
}

void Sender::relay(uint8_t* packet, const RtpView& v, const PayloadFacts& facts, uint64_t now_us) {
  if (!continues_relay(v, facts, now_us)) begin_relay(v, now_us);
  if (static_cast<int16_t>(v.seq - relay_last_seq_) > 0) {
    relay_last_seq_ = v.seq;
    // The packets of a key have the timestamp of its start.
    if (facts.kind == PayloadKind::audio || static_cast<int32_t>(v.ts - relay_last_ts_) > 0) {
      relay_last_ts_ = v.ts;
      relay_last_us_ = now_us;
    }
  }
  const auto seq = static_cast<uint16_t>(v.seq + relay_seq_off_);
  if (static_cast<int16_t>(seq - next_seq_) >= 0) next_seq_ = static_cast<uint16_t>(seq + 1);
  uint8_t* out = packet + v.header - kRtpHeader;
  uint8_t pt = format_.payload_type;
  if (facts.kind == PayloadKind::telephone_event) {
    pt = stream_.config().event.payload_type;
  } else if (facts.kind == PayloadKind::comfort_noise) {
    pt = static_cast<uint8_t>(stream_.config().comfort_noise_pt);
  } else {
    counted_.send_codec = format_.name;
    if (facts.codec != format_.codec) convert_g711(facts.codec, packet + v.header, v.payload);
  }
  emit(out, v.payload, pt, v.marker, seq, v.ts + relay_ts_off_, now_us);
}

void Sender::skip_relay(const RtpView& v) {
  if (source_ != Source::relay || v.ssrc != relay_ssrc_ || static_cast<int16_t>(v.seq - relay_last_seq_) <= 0) return;
  relay_last_seq_ = v.seq;
  --relay_seq_off_;
}

void Sender::relay_event(const RtpView& v, const TelephoneEvent& in, const PayloadFacts& facts, uint64_t now_us) {
  const PayloadFacts& format = stream_.config().event;
  const bool fresh = !event_any_ || v.ts != event_in_ts_ || in.event != event_in_;
  if (fresh) {
    event_any_ = true;
    event_in_ts_ = v.ts;
    event_in_ = in.event;
    event_out_ts_ = next_ts(now_us);
  }
  TelephoneEvent e = in;
  e.duration = static_cast<uint16_t>(
      std::min<uint64_t>(0xffff, uint64_t{in.duration} * format.clock_rate / std::max(1u, facts.clock_rate)));
  uint8_t packet[kRtpHeader + 4 + kTailRoom];
  write_telephone_event(packet + kRtpHeader, e);
  emit(packet, 4, format.payload_type, fresh, next_seq_++, event_out_ts_, now_us);
  relay_split_ = true;
}

// Sources of our own

void Sender::begin_made(uint64_t now_us) {
  splice(Source::made, now_us);
  relay_split_ = true;
}

void Sender::send_made(uint8_t* packet, size_t payload, uint64_t now_us) {
  counted_.send_codec = format_.name;
  emit(packet, payload, format_.payload_type, false, next_seq_++, made_ts_, now_us);
}

void Sender::send_silence(uint8_t* packet, size_t payload, uint64_t now_us) {
  counted_.send_codec = format_.name;
  address_packet(packet, payload, format_.payload_type, false, next_seq_++, made_ts_, now_us);
  hand_over(packet, payload);
}

void Sender::send_noise(uint8_t level, uint64_t now_us) {
  uint8_t packet[kRtpHeader + 1 + kTailRoom];
  packet[kRtpHeader] = level;
  marker_next_ = false;
  const auto pt = static_cast<uint8_t>(stream_.config().comfort_noise_pt);
  emit(packet, 1, pt, false, next_seq_++, made_ts_, now_us);
}

void Sender::send_key(const KeySender::Packet& key, uint64_t now_us) {
  if (key.first) {
    key_ts_ = next_ts(now_us);
    source_ = Source::keys;
  }
  uint8_t packet[kRtpHeader + 4 + kTailRoom];
  write_telephone_event(packet + kRtpHeader, key.event);
  // Only the first packet of a key carries the marker (RFC 4733 §2.5.1.1).
  marker_next_ = false;
  emit(packet, 4, stream_.config().event.payload_type, key.first, next_seq_++, key_ts_, now_us);
  if (!key.event.end) return;
  // Events may have another clock rate than the audio.
  const uint32_t clock = std::max(1u, stream_.config().event.clock_rate);
  last_ts_ = key_ts_ + static_cast<uint32_t>(uint64_t{key.event.duration} * format_.clock_rate / clock);
  last_ts_us_ = now_us;
}

}  // namespace media
