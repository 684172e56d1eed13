#include "reports.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "clock.h"
#include "stream.h"

namespace media {

namespace {
/** Reports that arrive closer together than this are dropped. */
constexpr uint64_t kLeastGapUs = 10'000;
constexpr size_t kMostMade = 1200;
}  // namespace

Reports::Reports(Stream& stream, std::string cname, uint64_t now_us)
    : stream_(stream), cname_(std::move(cname)), next_report_us_(now_us + 2'500'000 + random32() % 2'500'000) {}

// Addresses

void Reports::describe(const StreamConfig& before, const StreamConfig& next, const Address& rtp) {
  const bool moved = !(next.remote_rtp == before.remote_rtp);
  if (moved) seen_ = Address{};
  if (moved || next.rtcp_mux != before.rtcp_mux || !(next.remote_rtcp == before.remote_rtcp))
    address_ = next.rtcp_mux ? rtp : next.remote_rtcp;
}

void Reports::follow(const Address& before, const Address& rtp) {
  const StreamConfig& config = stream_.config();
  // An RTCP address learnt for the previous peer address no longer applies.
  if (before.known()) {
    address_ = config.rtcp_mux ? rtp : config.remote_rtcp;
    seen_ = Address{};
  }
  if (config.remote_rtcp.same_ip(rtp)) return;
  // The peer is behind a NAT. Assume RTCP on the next port until a report shows its real port.
  address_ = rtp;
  if (!config.rtcp_mux) ++address_.port;
}

/**
 * Accepts RTCP from the address in the SDP, from the source of RTP (RFC 5761, symmetric RTP), and from the port above
 * it (RFC 3550 §11). Behind a NAT the port is arbitrary: learns the first one of the latched host and keeps it.
 */
bool Reports::comes_from_peer(const Address& from, bool muxed) const {
  const StreamConfig& config = stream_.config();
  const Address& latched = stream_.receiver().latched();
  const Address& expected = latched.known() ? latched : config.remote_rtp;
  if (!expected.known()) return false;
  if (from == expected) return true;
  if (muxed) return false;
  if (from == config.remote_rtcp && (!latched.known() || from.same_ip(latched) || config.remote_rtp == latched))
    return true;
  if (!from.same_ip(expected)) return false;
  if (from.port == static_cast<uint16_t>(expected.port + 1)) return true;
  const bool translated = latched.known() && !(latched == config.remote_rtp);
  return translated && !stream_.policy().strict && (!seen_.known() || seen_ == from);
}

// The peer's reports

void Reports::on_rtcp(uint8_t* packet, size_t n, const Address& from, uint64_t now_us, bool muxed) {
  StreamCounters& c = stream_.counters();
  if (!comes_from_peer(from, muxed)) {
    ++c.strangers;
    return;
  }
  if (n > kMaxPacket || policed(now_us)) {
    ++c.policed;
    return;
  }
  last_rtcp_us_ = now_us;
  if (stream_.config().secured && !decrypt(packet, n)) return;
  PeerReport report;
  if (!parse_rtcp(packet, n, stream_.sender().ssrc(), report)) {
    ++c.malformed;
    return;
  }
  ++c.rtcp_received;
  last_report_us_ = now_us;
  if (!muxed) address_ = seen_ = from;
  take(report, now_us);
  Event e = stream_.event_of(EventType::rtcp);
  e.bytes.assign(packet, packet + n);
  stream_.tell(std::move(e));
}

bool Reports::policed(uint64_t now_us) {
  return last_rtcp_us_ && now_us - last_rtcp_us_ < kLeastGapUs;
}

bool Reports::decrypt(uint8_t* packet, size_t& n) {
  const SrtpResult result = stream_.receiver().unprotect_rtcp(packet, n);
  if (result == SrtpResult::ok) return true;
  StreamCounters& c = stream_.counters();
  ++(result == SrtpResult::replayed ? c.srtp_replayed : c.srtp_auth_failed);
  return false;
}

void Reports::take(const PeerReport& r, uint64_t now_us) {
  if (r.sender_info) {
    peer_sr_ = r.middle_ntp;
    peer_sr_ssrc_ = r.sender_ssrc;
    peer_sr_us_ = now_us;
  }
  if (!r.block) return;
  StreamCounters& c = stream_.counters();
  c.remote_known = true;
  c.remote_fraction_lost = r.fraction_lost / 256.0;
  c.remote_lost = r.cumulative_lost;
  c.remote_jitter_ms = r.jitter * 1000.0 / std::max(1u, stream_.config().send.clock_rate);
  if (!r.last_sr) return;
  const auto trip = static_cast<int32_t>(middle_ntp(clock_us(CLOCK_REALTIME)) - r.last_sr - r.delay);
  if (trip < 0 || trip >= 65536 * 30) return;
  c.rtt_ms = trip * 1000.0 / 65536;
  c.rtt_known = true;
}

// Our reports

void Reports::tick(uint64_t now_us) {
  if (now_us < next_report_us_) return;
  // RFC 3550 §6.2: a random interval of 0.5 to 1.5 times five seconds.
  next_report_us_ = now_us + 2'500'000 + random32() % 5'000'000;
  send_report(false, now_us);
}

/** A peer that holds the call by c=0.0.0.0 gets no RTCP either (RFC 3264 §8.4). */
bool Reports::reaches_peer() const {
  return stream_.config().reachable && address_.known();
}

void Reports::send_report(bool bye, uint64_t now_us) {
  const Sender& sender = stream_.sender();
  ReceiveStats& stats = stream_.receiver().stats();
  if (!reaches_peer() || (!sender.sent_any() && !stats.started())) return;
  OurReport r;
  r.ssrc = sender.ssrc();
  r.bye = bye;
  r.sender = sender.sent_packets() != reported_packets_ || (bye && sender.sent_any());
  reported_packets_ = sender.sent_packets();
  r.wall_us = clock_us(CLOCK_REALTIME);
  r.rtp_ts = sender.clock_now(now_us);
  r.packets = sender.sent_packets();
  r.octets = sender.sent_octets();
  if (stats.started()) fill_block(r, now_us);
  uint8_t packet[256];
  send(packet, write_rtcp(packet, r, cname_));
}

void Reports::fill_block(OurReport& r, uint64_t now_us) {
  ReceiveStats& stats = stream_.receiver().stats();
  const auto interval = stats.report();
  r.block = true;
  r.peer_ssrc = stats.ssrc();
  r.extended_max = stats.extended_max();
  r.fraction_lost = interval.fraction_lost;
  r.cumulative_lost = interval.cumulative_lost;
  r.jitter = static_cast<uint32_t>(stats.jitter_units());
  if (!peer_sr_us_ || peer_sr_ssrc_ != r.peer_ssrc) return;
  r.last_sr = peer_sr_;
  r.delay = static_cast<uint32_t>((now_us - peer_sr_us_) * 65536 / 1'000'000);
}

void Reports::send(uint8_t* packet, size_t n) {
  n = stream_.sender().protect_rtcp(packet, n);
  if (n == 0 || !reaches_peer()) return;
  Wire& wire = stream_.wire();
  const bool ok = stream_.config().rtcp_mux ? wire.send_rtp(packet, n, stream_.sender().address())
                                            : wire.send_rtcp(packet, n, address_);
  ++(ok ? stream_.counters().rtcp_sent : stream_.counters().send_failed);
}

void Reports::send_packet(const uint8_t* data, size_t n) {
  uint8_t packet[kMaxPacket + kTailRoom];
  if (n > kMostMade) return;
  std::memcpy(packet, data, n);
  send(packet, n);
}

}  // namespace media
