// The receiving half of a stream: who may send, what came, where it goes.
#include <algorithm>
#include <cstring>

#include "clock.h"
#include "conference.h"
#include "stream.h"

namespace media {

namespace {
/** So long after an SDP packets may still come from where the peer was before, or later than those of another. */
constexpr uint64_t kSettlingUs = 2'000'000;
}  // namespace

const PayloadFacts* Stream::payload_facts(uint8_t pt) {
  if (facts_known_ && facts_.payload_type == pt) return &facts_;
  const uint8_t index = payload_index_[pt];
  if (index == 0xff) return nullptr;
  facts_ = config_.receive[index];
  facts_known_ = true;
  return &facts_;
}

bool Stream::trusted(const Address& from) const {
  if (from.same_ip(config_.remote_rtp)) return true;
  if (policy_.strict) return any_holds(policy_.sources, from);
  return policy_.signalled_from.known() && from.same_ip(policy_.signalled_from);
}

/** The signalled address, where another port of its host or the sender of the SIP was quicker: their packets are taken
 * at once, so that a NAT costs no audio, but until 2 s after the SDP who was named comes first. */
bool Stream::outranks(const Address& from, uint64_t now_us) const {
  return from == config_.remote_rtp && now_us - described_us_ < kSettlingUs;
}

void Stream::latch(const Address& from) {
  // What was settled for the one before does not hold for this one.
  if (latched_.known()) rtcp_address_ = config_.rtcp_mux ? from : config_.remote_rtcp;
  latched_ = send_address_ = from;
  if (!config_.remote_rtcp.same_ip(from)) {
    // Behind a NAT: RTCP is where RTP is, one port on, until it shows itself.
    rtcp_address_ = from;
    if (!config_.rtcp_mux) ++rtcp_address_.port;
  }
  counters_->latched = true;
  wire_.settled(from);
  event(EventType::latched, from.port, 0, from.text().c_str());
}

/** Design section 4: the signalled address; then its host, and where the SIP came from; then, when those are silent,
 * who sends three in a row. */
bool Stream::admit(const Address& from, const RtpView& v, bool authenticated, uint64_t now_us) {
  if (latched_.known()) {  // by another, whom this one outranks
    latch(from);
    return true;
  }
  if (!config_.remote_rtp.known() || (context_.denied && any_holds(*context_.denied, from))) return false;
  // Packets still on their way from where the peer was must not draw the stream back there.
  const bool late = from == former_ && !(from == config_.remote_rtp) && now_us - described_us_ < kSettlingUs;
  if (late) return false;
  if (trusted(from)) {
    latch(from);
    return true;
  }
  if (policy_.strict) return false;
  if (config_.secured && !authenticated) return false;
  Candidate* c = nullptr;
  for (auto& known : candidates_)
    if (known.from == from) c = &known;
  if (!c) {
    c = &candidates_[next_candidate_++ % 4];
    *c = Candidate{from, v.ssrc, v.seq, 0};
  }
  c->count = c->ssrc == v.ssrc && c->next_seq == v.seq ? c->count + 1 : 1;
  c->ssrc = v.ssrc;
  c->next_seq = static_cast<uint16_t>(v.seq + 1);
  if (c->count < 3 || now_us - described_us_ < 1'000'000) return false;
  latch(from);
  return true;
}

/** The rate that is allowed, with half a second's worth at once for what a stalled network lets go together. */
bool Stream::policed(uint64_t now_us) {
  policing_us_ = std::max(policing_us_, now_us);
  if (policing_us_ - now_us > 500'000) return true;
  policing_us_ += policing_cost_us_;
  return false;
}

SrtpResult Stream::unprotect(uint8_t* packet, size_t& n, uint64_t now_us) {
  if (srtp_rx_old_) {
    // Just re-keyed: the peer may still use the key before, until it has our answer. AEAD destroys what it refuses, so
    // on a copy.
    uint8_t copy[kMaxPacket];
    std::memcpy(copy, packet, n);
    size_t size = n;
    if (srtp_rx_->unprotect(packet, n) == SrtpResult::ok) {
      srtp_rx_old_.reset();
      return SrtpResult::ok;
    }
    const SrtpResult result = srtp_rx_old_->unprotect(copy, size);
    if (result == SrtpResult::ok) {
      std::memcpy(packet, copy, size);
      n = size;
    }
    if (now_us > old_key_until_us_) srtp_rx_old_.reset();
    return result;
  }
  return srtp_rx_ ? srtp_rx_->unprotect(packet, n) : SrtpResult::auth_failed;
}

/** Of the peer 200 a second at most, 50 of them at once; of strangers half as many. */
void Stream::on_raw(const uint8_t* packet, size_t n, const Address& from, uint64_t now_us) {
  // A share of its own for whoever is the peer, and one of eight for each stranger: a flood starves itself alone.
  const bool peer = from == latched_ || from == send_address_;
  size_t share = 0;
  for (size_t i = 0; !peer && i < sizeof from.ip; ++i) share = share * 31 + from.ip[i];
  uint64_t& raw_us = raw_us_[peer ? 0 : 1 + (share * 31 + from.port) % kStrangerShares];
  raw_us = std::max(raw_us, now_us);
  if (raw_us - now_us > 250'000) {
    ++counters_->policed;
    return;
  }
  raw_us += peer ? 5'000 : 10'000;
  Event e;
  e.type = EventType::raw;
  e.stream = id_;
  e.text = from.text();
  e.a = from.port;
  e.bytes.assign(packet, packet + n);
  context_.events.push(std::move(e));
}

void Stream::on_rtp(uint8_t* packet, size_t n, const Address& from, uint64_t now_us) {
  StreamCounters& c = *counted_;
  if (takes_raw_ && n > 0 && (packet[0] < 4 || (packet[0] >= 20 && packet[0] < 64)))
    return on_raw(packet, n, from, now_us);
  if (rtcp_mux_ && looks_like_rtcp(packet, n)) return on_rtcp(packet, n, from, now_us, true);
  const bool latched = from == latched_;
  if (!latched && latched_.known() && !outranks(from, now_us)) {
    ++c.strangers;
    return;
  }
  RtpView v;
  if (n > kMaxPacket || !parse_rtp_header(packet, n, v)) {
    ++c.malformed;
    return;
  }
  const PayloadFacts* facts = payload_facts(v.payload_type);
  if (!facts) {
    ++c.unexpected;
    return;
  }
  if (secured_) {
    switch (unprotect(packet, n, now_us)) {
      case SrtpResult::ok:
        failing_since_us_ = 0;
        break;
      case SrtpResult::replayed:
        ++c.srtp_replayed;
        return;
      default:
        ++c.srtp_auth_failed;
        if (!failing_since_us_ && (latched_.known() || trusted(from))) failing_since_us_ = now_us;
        return;
    }
  }
  if (!parse_rtp(packet, n, v) || v.payload == 0) {
    ++c.malformed;
    return;
  }
  if (!latched && !admit(from, v, secured_, now_us)) {
    ++c.strangers;
    return;
  }
  if (policed(now_us)) {
    ++c.policed;
    return;
  }
  if (!may_receive_) {
    ++c.unexpected;
    return;
  }
  const bool audio = facts->kind == PayloadKind::audio;
  if (receive_.started() && v.ssrc != receive_.ssrc() && decode_) decode_->reset();
  const auto verdict = receive_.take(v.ssrc, v.seq, v.ts, facts->clock_rate, now_us, audio);
  if (verdict == ReceiveStats::Verdict::duplicate) {
    ++c.duplicate;
    return;
  }
  if (verdict == ReceiveStats::Verdict::doubtful) {
    ++c.unexpected;
    return;
  }
  if (verdict == ReceiveStats::Verdict::reordered) ++c.reordered;
  ++c.packets_received;
  c.bytes_received += v.payload;
  if (context_.counters) ++context_.counters->packets_received;
  c.lost = receive_.lost();
  c.bursts = receive_.bursts();
  c.longest_burst = receive_.longest_burst();
  c.ssrc_changes = receive_.ssrc_changes();
  c.jitter_ms = receive_.jitter_ms();
  c.jitter_max_ms = receive_.jitter_max_ms();
  if (last_received_us_ == 0) {
    const int64_t at = wall_ms();
    c.first_packet_ms = at;
    event(EventType::first_packet, at);
  }
  last_received_us_ = now_us;
  silent_told_ = 0;
  if (facts->kind == PayloadKind::telephone_event) return on_event(packet, v, *facts, now_us);
  if (audio && told_codec_ != facts->name) c.receive_codec = told_codec_ = facts->name;
  on_audio(packet, v, *facts, now_us);
}

void Stream::on_audio(uint8_t* packet, const RtpView& v, const PayloadFacts& facts, uint64_t now_us) {
  uint8_t* payload = packet + v.header;
  const bool noise = facts.kind == PayloadKind::comfort_noise;
  if (!noise)
    for (auto& r : record_received_)
      r.recording->packet_audio(r.track, v.ssrc, v.seq, v.ts, facts.clock_rate, facts.codec, payload, v.payload,
                                now_us);
  const bool relays =
      peer_ && peer_->sends_ &&
      (noise ? !transcoding_ && peer_->config_.comfort_noise_pt >= 0 : facts.passes_as(peer_->send_));
  // A silence frame of G.729 (RFC 3551 §4.5.6) has two bytes, and is the last of its packet.
  told_pause_ = noise || (facts.codec == CodecId::g729 && v.payload % 10 == 2);
  if (!noise) transcoding_ = !relays;
  else if (peer_ && !relays && !transcoding_) peer_->sound_pause(payload, v.payload, now_us);
  if (decode_ && (!relays || detector_ || conference_ || !taps_.empty()))
    decode_->insert(v.seq, v.ts, facts.codec, noise, payload, v.payload, now_us);
  // Last, because it rewrites the packet in place.
  if (relays) pass(packet, v, facts, now_us);
}

/** Relays, or remembers that the peer's numbering must not show what was held back. */
void Stream::pass(uint8_t* packet, const RtpView& v, const PayloadFacts& facts, uint64_t now_us) {
  if (peer_->clocked_ && peer_->pause_.on()) peer_->end_pause();
  if (!peer_->may_take_relay()) {
    peer_->relay_split_ = true;
    return;
  }
  if (told_pause_ && facts.codec == CodecId::g729 && !peer_->config_.silence_frames) {
    // The peer does not read silence frames.
    RtpView audio = v;
    audio.payload -= 2;
    return audio.payload ? peer_->relay(packet, audio, facts, now_us) : peer_->skip_relay(v);
  }
  peer_->relay(packet, v, facts, now_us);
}

void Stream::on_event(uint8_t* packet, const RtpView& v, const PayloadFacts& facts, uint64_t now_us) {
  TelephoneEvent e;
  if (!parse_telephone_event(packet + v.header, v.payload, e)) {
    ++counters_->malformed;
    return;
  }
  if (peer_ && peer_->pause_.on()) peer_->end_pause();
  const bool begins = !key_any_ || v.ts != key_in_ts_;
  // A key whose end was lost is told by the packet that begins the next one.
  if (begins && e.end) begin_key(v.ts);
  KeyReceiver::Key key;
  if (keys_in_.take(e, v.ts, facts.clock_rate, now_us, key)) told_key(key, false, now_us);
  if (begins && !e.end) begin_key(v.ts);
  if (!peer_) return;
  if (!relay_keys_ || key_waits_ || !peer_->may_take_relay() || !peer_->config_.sends_events) return peer_->skip_relay(v);
  const StreamConfig& out = peer_->config_;
  if (!transcoding_ && facts.clock_rate == out.event.clock_rate && out.event.clock_rate == out.send.clock_rate)
    peer_->relay(packet, v, facts, now_us);
  else
    peer_->relay_event(v, e, facts, now_us);
}

/** While the peer is sent keys of ours, one that comes waits for its turn. */
void Stream::begin_key(uint32_t ts) {
  key_any_ = true;
  key_in_ts_ = ts;
  key_waits_ = peer_ && peer_->keys_out_ && peer_->keys_out_->busy();
}

void Stream::told_key(const KeyReceiver::Key& key, bool inband, uint64_t now_us) {
  if (inband) {
    inband_key_us_ = now_us;
  } else {
    ++counters_->keys_received;
    // The tone is in the audio as well with some senders: the key was told already.
    if (inband_key_us_ && now_us - inband_key_us_ < 250'000) return;
  }
  Event e;
  e.type = EventType::key;
  e.stream = id_;
  e.text = std::string(1, key.digit);
  e.a = key.duration_ms;
  e.flag = inband;
  context_.events.push(std::move(e));
  for (auto& r : record_received_)
    if (r.track == 0 && r.recording->packet_key(key.digit, now_us) && context_.recorder) context_.recorder->wake();
  // A peer that takes no events hears the key as its tones.
  const bool passes = peer_ && peer_->config_.sends_events && !key_waits_;
  if (!inband && peer_ && relay_keys_ && peer_->config_.sends && !passes && peer_ != this)
    peer_->send_keys({"", std::string(1, key.digit), std::clamp(key.duration_ms, 60u, 1000u), 60}, now_us);
}

/**
 * RTCP comes from where the SDP says, from where RTP comes (RFC 5761, symmetric RTP), or from the port above (RFC 3550
 * §11). Behind a NAT its port can be any: the first one of the latched host is learnt, and holds.
 */
bool Stream::reports_from(const Address& from, bool muxed) const {
  const Address& expected = latched_.known() ? latched_ : config_.remote_rtp;
  if (!expected.known()) return false;
  if (from == expected) return true;
  if (muxed) return false;
  if (from == config_.remote_rtcp && (!latched_.known() || from.same_ip(latched_) || config_.remote_rtp == latched_))
    return true;
  if (!from.same_ip(expected)) return false;
  if (from.port == static_cast<uint16_t>(expected.port + 1)) return true;
  const bool translated = latched_.known() && !(latched_ == config_.remote_rtp);
  return translated && !policy_.strict && (!rtcp_seen_.known() || rtcp_seen_ == from);
}

void Stream::on_rtcp(uint8_t* packet, size_t n, const Address& from, uint64_t now_us, bool muxed) {
  StreamCounters& c = *counters_;
  if (!reports_from(from, muxed)) {
    ++c.strangers;
    return;
  }
  if (n > kMaxPacket || (last_rtcp_us_ && now_us - last_rtcp_us_ < 10'000)) {
    ++c.policed;
    return;
  }
  last_rtcp_us_ = now_us;
  if (config_.secured) {
    uint8_t copy[kMaxPacket];
    size_t size = n;
    std::memcpy(copy, packet, n);
    SrtpResult result = srtp_rx_ ? srtp_rx_->unprotect_rtcp(packet, n) : SrtpResult::auth_failed;
    if (result == SrtpResult::auth_failed && srtp_rx_old_) {
      result = srtp_rx_old_->unprotect_rtcp(copy, size);
      std::memcpy(packet, copy, size);
      n = size;
    }
    if (result != SrtpResult::ok) {
      ++(result == SrtpResult::replayed ? c.srtp_replayed : c.srtp_auth_failed);
      return;
    }
  }
  PeerReport r;
  if (!parse_rtcp(packet, n, ssrc_, r)) {
    ++c.malformed;
    return;
  }
  ++c.rtcp_received;
  last_report_us_ = now_us;
  if (!muxed) rtcp_address_ = rtcp_seen_ = from;
  if (r.sender_info) {
    peer_sr_ = r.middle_ntp;
    peer_sr_ssrc_ = r.sender_ssrc;
    peer_sr_us_ = now_us;
  }
  if (r.block) {
    c.remote_known = true;
    c.remote_fraction_lost = r.fraction_lost / 256.0;
    c.remote_lost = r.cumulative_lost;
    c.remote_jitter_ms = r.jitter * 1000.0 / std::max(1u, config_.send.clock_rate);
    if (r.last_sr) {
      const auto trip = static_cast<int32_t>(middle_ntp(clock_us(CLOCK_REALTIME)) - r.last_sr - r.delay);
      if (trip >= 0 && trip < 65536 * 30) {
        c.rtt_ms = trip * 1000.0 / 65536;
        c.rtt_known = true;
      }
    }
  }
  Event e;
  e.type = EventType::rtcp;
  e.stream = id_;
  e.bytes.assign(packet, packet + n);
  context_.events.push(std::move(e));
}

}  // namespace media
