// The life of a stream: its settled state, what hangs on it, its housekeeping. Receiving and sending are files of their
// own.
#include "stream.h"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include "clock.h"
#include "conference.h"

namespace media {

uint32_t random32() {
  uint32_t v = 0;
  while (getrandom(&v, sizeof v, 0) != static_cast<ssize_t>(sizeof v)) {
  }
  return v;
}

const char* intern(const std::string& name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

Stream::Stream(uint32_t id, Policy policy, ThreadContext& context, Wire& wire, std::shared_ptr<StreamCounters> counters,
               std::string cname, uint64_t now_us)
    : counted_(counters.get()),
      wire_(wire),
      context_(context),
      id_(id),
      policy_(std::move(policy)),
      counters_(std::move(counters)),
      cname_(std::move(cname)) {
  std::memset(payload_index_, 0xff, sizeof payload_index_);
  ssrc_ = random32();
  // Below half, so that a receiver can tell the first roll-over (RFC 3711 §3.3.1) even when packets are lost before it.
  next_seq_ = static_cast<uint16_t>(random32() & 0x7fff);
  last_ts_ = random32();
  described_us_ = silent_since_us_ = last_ts_us_ = now_us;
  second_timer_.bind([](void* s, uint64_t now) { static_cast<Stream*>(s)->second_tick(now); }, this);
  decode_timer_.bind([](void* s, uint64_t now) { static_cast<Stream*>(s)->decode_tick(now); }, this);
  clock_timer_.bind([](void* s, uint64_t now) { static_cast<Stream*>(s)->clock_tick(now); }, this);
  context_.wheel.set(second_timer_, now_us + 100'000 + random32() % 900'000);
  next_report_us_ = now_us + 2'500'000 + random32() % 2'500'000;
}

Stream::~Stream() {
  closed_ = true;
  send_to(nullptr, 0);
  for (auto* s : sources_) s->peer_ = nullptr;
}

void Stream::event(EventType type, int64_t a, int64_t b, const char* text) {
  Event e;
  e.type = type;
  e.stream = id_;
  e.a = a;
  e.b = b;
  e.text = text;
  context_.events.push(std::move(e));
}

void Stream::describe(StreamConfig next, uint64_t now_us) {
  if (context_.denied && any_holds(*context_.denied, next.remote_rtp)) next.remote_rtp = next.remote_rtcp = Address{};
  if (!(next.remote_rtp == config_.remote_rtp)) {
    former_ = latched_;
    latched_ = rtcp_seen_ = Address{};
    for (auto& c : candidates_) c = Candidate{};
    counters_->latched = false;
    described_us_ = silent_since_us_ = now_us;
    send_address_ = next.remote_rtp;
    rtcp_address_ = next.rtcp_mux ? next.remote_rtp : next.remote_rtcp;
    wire_.settled(Address{});
  } else if (next.rtcp_mux != config_.rtcp_mux || !(next.remote_rtcp == config_.remote_rtcp)) {
    rtcp_address_ = next.rtcp_mux ? send_address_ : next.remote_rtcp;
  }
  if (!next.secured) {
    srtp_rx_.reset();
    srtp_rx_old_.reset();
    srtp_tx_.reset();
  } else {
    if (!srtp_rx_ || !srtp_rx_->same_key(next.suite, next.receive_key.data(), next.receive_key.size())) {
      srtp_rx_old_ = std::move(srtp_rx_);
      old_key_until_us_ = now_us + 5'000'000;
      srtp_rx_ = SrtpContext::make(next.suite, next.receive_key.data(), next.receive_key.size());
      failing_since_us_ = 0;
      srtp_told_ = false;
    }
    if (!srtp_tx_ || !srtp_tx_->same_key(next.suite, next.send_key.data(), next.send_key.size()))
      srtp_tx_ = SrtpContext::make(next.suite, next.send_key.data(), next.send_key.size());
  }
  const bool other_format = !next.sends || !config_.sends || !next.send.same_format(config_.send) ||
                            next.ptime_ms != config_.ptime_ms || next.bitrate != config_.bitrate ||
                            next.fec != config_.fec || next.dtx != config_.dtx;
  if (other_format) {
    encoder_.reset();
    outgoing_.clear();
    relay_split_ = true;
    if (source_ == Source::made) source_ = Source::none;
  }
  if (next.may_send && !config_.may_send) relay_split_ = true;
  if (next.may_receive && !config_.may_receive) silent_since_us_ = now_us;
  config_ = std::move(next);
  rtcp_mux_ = config_.rtcp_mux;
  secured_ = config_.secured;
  may_receive_ = config_.may_receive;
  may_send_ = config_.may_send;
  sends_ = config_.sends;
  send_ = config_.send;
  // Three times the nominal rate.
  policing_cost_us_ = static_cast<uint32_t>(config_.ptime_ms) * 1000 / 3;
  facts_known_ = false;
  std::memset(payload_index_, 0xff, sizeof payload_index_);
  for (size_t i = 0; i < config_.receive.size() && i < 0xff; ++i)
    payload_index_[config_.receive[i].payload_type & 0x7f] = static_cast<uint8_t>(i);
  update_decoding(now_us);
  for (auto* s : sources_) s->update_decoding(now_us);
}

void Stream::send_to(Stream* peer, uint64_t now_us) {
  if (peer_) {
    std::erase(peer_->sources_, this);
    peer_->end_pause();
  }
  peer_ = peer;
  transcoding_ = false;
  if (peer_) {
    peer_->sources_.push_back(this);
    peer_->relay_split_ = true;
  }
  if (!closed_) update_decoding(now_us);
}

void Stream::detect(bool inband, bool voice, bool tones, uint64_t now_us) {
  detect_inband_ = inband;
  detect_voice_ = voice;
  detect_tones_ = tones;
  detector_.reset();
  update_decoding(now_us);
}

void Stream::tap(std::string id, bool sent, int rate_hz, int chunk_ms, uint64_t now_us) {
  untap(id, now_us);
  if (taps_.size() >= 8) return;
  taps_.push_back({std::move(id), sent, rate_hz, static_cast<size_t>(rate_hz / 1000 * chunk_ms), {}, nullptr, 0});
  update_decoding(now_us);
}

void Stream::untap(const std::string& id, uint64_t now_us) {
  std::erase_if(taps_, [&](const Tap& t) { return t.id == id; });
  update_decoding(now_us);
}

void Stream::record(std::shared_ptr<Recording> recording, int track, bool sent) {
  (sent ? record_sent_ : record_received_).push_back({std::move(recording), track});
}

void Stream::unrecord(const Recording* recording) {
  const auto is = [&](const RecordTrack& t) { return t.recording.get() == recording; };
  std::erase_if(record_received_, is);
  std::erase_if(record_sent_, is);
}

void Stream::join(std::shared_ptr<ConferencePort> port, uint64_t now_us) {
  leave(now_us);
  conference_ = std::move(port);
  encoder_.reset();
  update_decoding(now_us);
  start_clock(now_us);
}

void Stream::leave(uint64_t now_us) {
  if (!conference_) return;
  conference_->left.store(true, std::memory_order_release);
  conference_.reset();
  update_decoding(now_us);
}

void Stream::close(uint64_t now_us) {
  if (closed_) return;
  send_report(true, now_us);
  closed_ = true;
  end_play("closed");
  feed_clear();
  if (keys_out_ && keys_out_->busy() && !keys_out_->front().id.empty()) {
    Event e;
    e.type = EventType::digits_sent;
    e.stream = id_;
    e.id = keys_out_->front().id;
    context_.events.push(std::move(e));
  }
  leave(now_us);
  send_to(nullptr, now_us);
  const std::vector<Stream*> sources = sources_;
  for (auto* s : sources) s->send_to(nullptr, now_us);
  for (auto& r : record_received_)
    if (r.track == 0) r.recording->packet_end(RecordEnd::leg_closed, now_us);
  if (!record_received_.empty() && context_.recorder) context_.recorder->wake();
  record_received_.clear();
  record_sent_.clear();
  decode_.reset();
  second_timer_.cancel();
  decode_timer_.cancel();
  clock_timer_.cancel();
}

void Stream::second_tick(uint64_t now_us) {
  context_.wheel.set(second_timer_, now_us + 1'000'000);
  wire_.look_after(now_us);
  KeyReceiver::Key key;
  if (keys_in_.expire(now_us, key)) told_key(key, false, now_us);
  if (last_received_us_)
    counters_->last_packet_ms = wall_ms() - static_cast<int64_t>((now_us - last_received_us_) / 1000);
  if (config_.may_receive && config_.remote_rtp.known()) {
    // One that has announced a pause is there as long as its reports come.
    const uint64_t since = std::max({last_received_us_, silent_since_us_, told_pause_ ? last_report_us_ : 0});
    const uint64_t silent_s = (now_us - since) / 1'000'000;
    if (silent_s / 10 > silent_told_) {
      silent_told_ = static_cast<uint32_t>(silent_s / 10);
      event(EventType::silent, static_cast<int64_t>((now_us - since) / 1000));
    }
  }
  if (failing_since_us_ && !srtp_told_ && now_us - failing_since_us_ >= 5'000'000) {
    srtp_told_ = true;
    event(EventType::srtp_failed);
  }
  if (now_us >= next_report_us_) {
    // RFC 3550 §6.2: five seconds, taken at random between half and one and a half of it.
    next_report_us_ = now_us + 2'500'000 + random32() % 5'000'000;
    send_report(false, now_us);
  }
}

void Stream::send_report(bool bye, uint64_t now_us) {
  if (!rtcp_address_.known() || (!sent_any_ && !receive_.started())) return;
  OurReport r;
  r.ssrc = ssrc_;
  r.bye = bye;
  r.sender = sent_packets_ != reported_packets_ || (bye && sent_any_);
  reported_packets_ = sent_packets_;
  r.wall_us = clock_us(CLOCK_REALTIME);
  r.rtp_ts = last_ts_ + static_cast<uint32_t>((now_us - last_ts_us_) * config_.send.clock_rate / 1'000'000);
  r.packets = sent_packets_;
  r.octets = sent_octets_;
  if (receive_.started()) {
    const auto interval = receive_.report();
    r.block = true;
    r.peer_ssrc = receive_.ssrc();
    r.extended_max = receive_.extended_max();
    r.fraction_lost = interval.fraction_lost;
    r.cumulative_lost = interval.cumulative_lost;
    r.jitter = static_cast<uint32_t>(receive_.jitter_units());
    if (peer_sr_us_ && peer_sr_ssrc_ == r.peer_ssrc) {
      r.last_sr = peer_sr_;
      r.delay = static_cast<uint32_t>((now_us - peer_sr_us_) * 65536 / 1'000'000);
    }
  }
  uint8_t packet[256];
  send_rtcp(packet, write_rtcp(packet, r, cname_));
}

void Stream::send_rtcp(uint8_t* packet, size_t n) {
  if (config_.secured) n = srtp_tx_ ? srtp_tx_->protect_rtcp(packet, n) : 0;
  if (n == 0 || !rtcp_address_.known()) return;
  const bool ok =
      config_.rtcp_mux ? wire_.send_rtp(packet, n, send_address_) : wire_.send_rtcp(packet, n, rtcp_address_);
  ++(ok ? counters_->rtcp_sent : counters_->send_failed);
}

void Stream::send_rtcp_packet(const uint8_t* data, size_t n) {
  uint8_t packet[kMaxPacket + kTailRoom];
  if (n > 1200) return;
  std::memcpy(packet, data, n);
  send_rtcp(packet, n);
}

}  // namespace media
