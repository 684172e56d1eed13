#include "receiver.h"

#include <algorithm>
#include <cstring>

#include "clock.h"
#include "conference.h"
#include "stream.h"

namespace media {

namespace {
/** For this long after an SDP, late packets may come from the peer's previous address, and the signalled address may
 * take over from another one. */
constexpr uint64_t kSettlingUs = 2'000'000;
/** For this long after an SDP, only trusted senders can become the peer. */
constexpr uint64_t kNamedFirstUs = 1'000'000;
/** The burst that a stalled network may deliver at once, as a time at three times the nominal rate. */
constexpr uint64_t kBurstUs = 500'000;
/** A peer that has been silent for this long may go on at another address. */
constexpr uint64_t kMovedUs = 200'000;
/** After a hold, another port of the host of a silent peer may become the peer for this long. */
constexpr uint64_t kResumedUs = 5'000'000;
/** A stream that goes on at another address has lost at most this many packets on the way: ten seconds of them. */
constexpr uint16_t kMostLost = 500;
/** A pause between packets that is longer counts as time without media. */
constexpr uint64_t kGapUs = 1'000'000;
constexpr uint8_t kUnknownPayload = 0xff;
}  // namespace

Receiver::Receiver(Stream& stream, StreamCounters& counted, ThreadContext& context, uint64_t now_us)
    : ReceiverLines(stream, counted, context), keys_(stream), described_us_(now_us),
      resumed_us_(now_us), silent_since_us_(now_us) {
  std::memset(payload_index_, kUnknownPayload, sizeof payload_index_);
}

void Receiver::describe(const StreamConfig& before, const StreamConfig& next, uint64_t now_us) {
  if (before.may_receive && !next.may_receive) end_gap(now_us);
  if (!(next.remote_rtp == before.remote_rtp)) {
    former_ = latched_;
    latched_ = Address{};
    newcomers_.forget();
    counted_.latched = false;
    described_us_ = silent_since_us_ = now_us;
  }
  srtp_.describe(next, now_us);
  if ((next.may_send && !before.may_send) || (next.may_receive && !before.may_receive)) resumed_us_ = now_us;
  if (next.may_receive && !before.may_receive) silent_since_us_ = now_us;
  rtcp_mux_ = next.rtcp_mux;
  secured_ = next.secured;
  may_receive_ = next.may_receive;
  // Police at three times the nominal rate. The peer's ptime is for what we send: it may send shorter packets itself.
  policing_cost_us_ = static_cast<uint32_t>(std::min(next.ptime_ms, 20)) * 1000 / 3;
  facts_known_ = false;
  std::memset(payload_index_, kUnknownPayload, sizeof payload_index_);
  for (size_t i = 0; i < next.receive.size() && i < kUnknownPayload; ++i)
    payload_index_[next.receive[i].payload_type & 0x7f] = static_cast<uint8_t>(i);
}

// Senders

bool Receiver::trusted(const Address& from) const {
  const Policy& policy = stream_.policy();
  if (from.same_ip(stream_.config().remote_rtp)) return true;
  if (policy.strict) return any_holds(policy.sources, from);
  return policy.signalled_from.known() && from.same_ip(policy.signalled_from);
}

/** RFC 8445 §12.2: until the browser nominates a pair, it may send over any that a check proved. */
bool Receiver::proved(const Address& from) const {
  return std::find(proved_.begin(), proved_.end(), from) != proved_.end();
}

/** For 2 s after the SDP, the signalled address outranks other ports of its host and the source of the SIP. The stream
 * moves to it even after latching to one of them. It takes their packets at once all the same, so a NAT costs no
 * audio. */
bool Receiver::outranks(const Address& from, uint64_t now_us) const {
  return from == stream_.config().remote_rtp && now_us - described_us_ < kSettlingUs;
}

/** Reports whether the peer goes on at another address, because its NAT gave it a new one (decision 1085). Its old
 * address must be silent, and three packets in a row must continue a secured stream or follow a hold. ICE proves a
 * browser's addresses. */
bool Receiver::has_moved(const uint8_t* packet, size_t n, const Address& from, uint64_t now_us) {
  if (now_us - last_received_us_ < kMovedUs || takes_raw_ || !stats_.started()) return false;
  if (stream_.policy().strict && !trusted(from)) return false;
  if (context_.denied && any_holds(*context_.denied, from)) return false;
  RtpView v;
  if (n > kMaxPacket || !parse_rtp_header(packet, n, v)) return false;
  return ((secured_ && continues(v)) || resumes(from, now_us)) && newcomers_.persists(from, v);
}

/** Reports whether a packet continues the stream, by its SSRC and number. Its authentication is checked before the move. */
bool Receiver::continues(const RtpView& v) const {
  const auto ahead = static_cast<uint16_t>(v.seq - stats_.max_seq());
  return v.ssrc == stats_.ssrc() && ahead > 0 && ahead <= kMostLost;
}

/** Reports whether the peer has been silent since the end of a hold, which its NAT may not have outlasted. Its host may
 * begin a new stream then. */
bool Receiver::resumes(const Address& from, uint64_t now_us) const {
  return from.same_ip(latched_) && last_received_us_ < resumed_us_ && now_us - resumed_us_ < kResumedUs;
}

void Receiver::latch(const Address& from) {
  newcomers_.forget();
  stream_.reports().follow(latched_, from);
  latched_ = from;
  stream_.sender().send_to(from);
  counted_.latched = true;
  stream_.wire().settled(from);
  stream_.tell(EventType::latched, from.port, 0, from.text().c_str());
}

/** Decides whether a sender becomes the peer, by the order of trust in design section 4: the signalled address; its
 * host and the source of the SIP; when those are silent, any sender of three packets in a row. */
bool Receiver::admit(const Address& from, const RtpView& v, uint64_t now_us) {
  const StreamConfig& config = stream_.config();
  if (latched_.known()) {  // accept() has checked that `from` may take the place of the latched address
    latch(from);
    return true;
  }
  if (!config.remote_rtp.known() || (context_.denied && any_holds(*context_.denied, from))) return false;
  // Late packets from the peer's previous address must not move the stream back to it.
  const bool late = from == former_ && !(from == config.remote_rtp) && now_us - described_us_ < kSettlingUs;
  const bool checked = proved(from);
  if (late && !checked) return false;
  if (!checked && !trusted(from)) {
    if (stream_.policy().strict) return false;
    if (!newcomers_.persists(from, v) || now_us - described_us_ < kNamedFirstUs) return false;
  }
  latch(from);
  return true;
}

/** Polices the stream at three times the negotiated rate, with bursts of half a second at that rate. */
bool Receiver::policed(uint64_t now_us) {
  policing_us_ = std::max(policing_us_, now_us);
  if (policing_us_ - now_us > kBurstUs) return true;
  policing_us_ += policing_cost_us_;
  return false;
}

void Receiver::on_raw(const uint8_t* packet, size_t n, const Address& from, uint64_t now_us) {
  const bool peer = from == latched_ || from == stream_.sender().address();
  if (!raw_gate_.passes(from, peer, now_us)) {
    ++counted_.policed;
    return;
  }
  Event e = stream_.event_of(EventType::raw);
  e.text = from.text();
  e.a = from.port;
  e.bytes.assign(packet, packet + n);
  stream_.tell(std::move(e));
}

bool Receiver::decrypt(uint8_t* packet, size_t& n, const Address& from, uint64_t now_us) {
  switch (srtp_.unprotect(packet, n, now_us)) {
    case SrtpResult::ok:
      return true;
    case SrtpResult::replayed:
      ++counted_.srtp_replayed;
      return false;
    default:
      ++counted_.srtp_auth_failed;
      if (latched_.known() || trusted(from)) srtp_.note_failure(now_us);
      return false;
  }
}

/** Decrypts and checks a packet, and returns the facts of its payload type. Null when the packet is refused; a counter
 * then records the reason. */
const PayloadFacts* Receiver::accept(uint8_t* packet, size_t n, const Address& from, RtpView& v, uint64_t now_us) {
  const auto refuse = [](Count& counter) -> const PayloadFacts* {
    ++counter;
    return nullptr;
  };
  StreamCounters& c = counted_;
  const bool latched = from == latched_;
  if (!latched && latched_.known() && !outranks(from, now_us) && !proved(from) &&
      !has_moved(packet, n, from, now_us))
    return refuse(c.strangers);
  if (n > kMaxPacket || !parse_rtp_header(packet, n, v)) return refuse(c.malformed);
  const PayloadFacts* facts = payload_facts(v.payload_type);
  if (!facts) return refuse(c.unexpected);
  if (secured_ && !decrypt(packet, n, from, now_us)) return nullptr;
  if (!parse_rtp(packet, n, v) || v.payload == 0) return refuse(c.malformed);
  if (!latched && !admit(from, v, now_us)) return refuse(c.strangers);
  if (policed(now_us)) return refuse(c.policed);
  if (!may_receive_) return refuse(c.unexpected);
  return facts;
}

// Payload types and counters

const PayloadFacts* Receiver::payload_facts(uint8_t pt) {
  if (facts_known_ && facts_.payload_type == pt) return &facts_;
  const uint8_t index = payload_index_[pt];
  if (index == kUnknownPayload) return nullptr;
  facts_ = stream_.config().receive[index];
  facts_known_ = true;
  return &facts_;
}

void Receiver::on_rtp(uint8_t* packet, size_t n, const Address& from, uint64_t now_us) {
  if (takes_raw_ && n > 0 && (packet[0] < 4 || (packet[0] >= 20 && packet[0] < 64)))
    return on_raw(packet, n, from, now_us);
  if (rtcp_mux_ && looks_like_rtcp(packet, n)) return stream_.reports().on_rtcp(packet, n, from, now_us, true);
  RtpView v;
  const PayloadFacts* facts = accept(packet, n, from, v, now_us);
  if (!facts || !count(v, *facts, now_us)) return;
  if (facts->kind == PayloadKind::telephone_event) return keys_.on_event(packet, v, *facts, now_us);
  if (facts->kind == PayloadKind::audio && told_codec_ != facts->name)
    counted_.receive_codec = told_codec_ = facts->name;
  on_audio(packet, v, *facts, now_us);
}

/** Counts a packet. False when it is a duplicate or its sequence number is doubtful. */
bool Receiver::count(const RtpView& v, const PayloadFacts& facts, uint64_t now_us) {
  StreamCounters& c = counted_;
  if (stats_.started() && v.ssrc != stats_.ssrc() && decode_) decode_->reset();
  const bool audio = facts.kind == PayloadKind::audio;
  switch (stats_.take(v.ssrc, v.seq, v.ts, facts.clock_rate, now_us, audio)) {
    case ReceiveStats::Verdict::duplicate:
      ++c.duplicate;
      return false;
    case ReceiveStats::Verdict::doubtful:
      ++c.unexpected;
      return false;
    case ReceiveStats::Verdict::reordered:
      ++c.reordered;
      break;
    case ReceiveStats::Verdict::fresh:
      break;
  }
  ++c.packets_received;
  c.bytes_received += v.payload;
  if (context_.counters) ++context_.counters->packets_received;
  c.lost = stats_.lost();
  c.bursts = stats_.bursts();
  c.longest_burst = stats_.longest_burst();
  c.ssrc_changes = stats_.ssrc_changes();
  c.jitter_ms = stats_.jitter_ms();
  c.jitter_max_ms = stats_.jitter_max_ms();
  if (now_us - last_received_us_ > kGapUs) end_gap(now_us);
  if (last_received_us_ == 0) {
    const int64_t at = wall_ms();
    c.first_packet_ms = at;
    stream_.tell(EventType::first_packet, at);
  }
  last_received_us_ = now_us;
  silent_told_ = 0;
  return true;
}

// Forwarding

void Receiver::on_audio(uint8_t* packet, const RtpView& v, const PayloadFacts& facts, uint64_t now_us) {
  uint8_t* payload = packet + v.header;
  const bool noise = facts.kind == PayloadKind::comfort_noise;
  // Recordings and the mix see the same mute.
  if (!noise && !recordings_.empty() && !stream_.sources().muted())
    for (auto& r : recordings_)
      r.recording->packet_audio(r.track, v.ssrc, v.seq, v.ts, facts.clock_rate, facts.codec, payload, v.payload,
                                now_us);
  const bool relays = peer_ && peer_->sender().sends() &&
                      (noise ? !transcoding_ && peer_->config().comfort_noise_pt >= 0
                             : facts.passes_as(peer_->sender().format()) && fits(v, now_us));
  // A G.729 silence frame (RFC 3551 §4.5.6) has two bytes and ends its packet.
  told_pause_ = noise || (facts.codec == CodecId::g729 && v.payload % 10 == 2);
  if (!noise)
    transcoding_ = !relays;
  else if (peer_ && !relays && !transcoding_)
    peer_->sources().sound_pause(payload, v.payload, now_us);
  if (decode_ && (!relays || stream_.listening().is_heard())) {
    decode_->insert(v.seq, v.ts, facts.codec, noise, payload, v.payload, now_us);
    if (!noise) stream_.listening().arrived(v, facts.codec, payload, now_us);
  }
  // Relay last, because this rewrites the packet in place.
  if (relays) pass(packet, v, facts, now_us);
}

/** Reports whether the peer takes packets of this length. Otherwise the audio is packed anew from here on. */
bool Receiver::fits(const RtpView& v, uint64_t now_us) {
  if (peer_->sender().takes(v.payload)) return true;
  if (!decode_) stream_.listening().repack(now_us);
  return false;
}

/** Relays a packet. When it holds the packet back, leaves no gap in the peer's sequence numbers. */
void Receiver::pass(uint8_t* packet, const RtpView& v, const PayloadFacts& facts, uint64_t now_us) {
  Sender& out = peer_->sender();
  if (out.clocked()) peer_->sources().interrupt_pause();
  if (!out.may_take_relay()) return out.split_relay();
  if (told_pause_ && facts.codec == CodecId::g729 && !peer_->config().silence_frames) {
    // Remove the silence frame, which the peer does not read.
    RtpView audio = v;
    audio.payload -= 2;
    return audio.payload ? out.relay(packet, audio, facts, now_us) : out.skip_relay(v);
  }
  out.relay(packet, v, facts, now_us);
}

void Receiver::record_key(char digit, uint64_t now_us) {
  for (auto& r : recordings_)
    if (r.track == 0 && r.recording->packet_key(digit, now_us) && context_.recorder) context_.recorder->wake();
}

void Receiver::end_recordings(uint64_t now_us) {
  for (auto& r : recordings_)
    if (r.track == 0) r.recording->packet_end(RecordEnd::leg_closed, now_us);
  if (!recordings_.empty() && context_.recorder) context_.recorder->wake();
  recordings_.clear();
}

// Housekeeping

bool Receiver::is_silent(uint64_t now_us) const {
  return last_received_us_ + kGapUs < now_us;
}

/** Returns how long packets have been due; 0 before the first, in a hold and in a pause that the peer announced. */
uint64_t Receiver::gap_us(uint64_t now_us) const {
  if (!last_received_us_ || !may_receive_ || told_pause_) return 0;
  const uint64_t gap = now_us - std::max(last_received_us_, silent_since_us_);
  return gap > kGapUs ? gap : 0;
}

void Receiver::end_gap(uint64_t now_us) {
  counted_.gaps_ms += gap_us(now_us) / 1000;
  counted_.gap_ms = 0;
}

void Receiver::second_tick(uint64_t now_us) {
  keys_.expire(now_us);
  if (last_received_us_)
    counted_.last_packet_ms = wall_ms() - static_cast<int64_t>((now_us - last_received_us_) / 1000);
  counted_.gap_ms = gap_us(now_us) / 1000;
  if (counted_.packets_received != timed_packets_) {
    timed_packets_ = counted_.packets_received;
    ++counted_.jitter_seconds;
    counted_.jitter_sum_ms += stats_.jitter_ms();
  }
  if (may_receive_ && stream_.config().remote_rtp.known()) tell_silence(now_us);
  if (srtp_.has_failed(now_us)) stream_.tell(EventType::srtp_failed);
}

/** Reports every ten seconds without a packet. */
void Receiver::tell_silence(uint64_t now_us) {
  // A peer that has announced a pause is alive as long as its RTCP reports arrive.
  const uint64_t since =
      std::max({last_received_us_, silent_since_us_, told_pause_ ? stream_.reports().last_received_us() : 0});
  const uint64_t silent_us = now_us - since;
  const auto tens = static_cast<uint32_t>(silent_us / 10'000'000);
  if (tens <= silent_told_) return;
  silent_told_ = tens;
  stream_.tell(EventType::silent, static_cast<int64_t>(silent_us / 1000));
}

}  // namespace media
