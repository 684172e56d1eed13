// The RTCP of a stream: our reports to the peer, and the peer's to us.
//
// Thread: the packet thread of its stream. Memory: cold; each side sends a report every few seconds.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "address.h"
#include "config.h"
#include "rtcp.h"

namespace media {

class Stream;

class Reports {
 public:
  Reports(Stream& stream, std::string cname, uint64_t now_us);

  void describe(const StreamConfig& before, const StreamConfig& next, const Address& rtp);
  /** Follows the stream, which has latched to `rtp`. `before` is the previous latched address, if any. */
  void follow(const Address& before, const Address& rtp);
  void on_rtcp(uint8_t* packet, size_t n, const Address& from, uint64_t now_us, bool muxed);
  /** Sends a report when one is due. */
  void tick(uint64_t now_us);
  void send_report(bool bye, uint64_t now_us);
  /** Sends a packet that JavaScript has composed. */
  void send_packet(const uint8_t* data, size_t n);
  uint64_t last_received_us() const { return last_report_us_; }

 private:
  bool comes_from_peer(const Address& from, bool muxed) const;
  bool reaches_peer() const;
  bool policed(uint64_t now_us);
  bool decrypt(uint8_t* packet, size_t& n);
  void take(const PeerReport& report, uint64_t now_us);
  void fill_block(OurReport& report, uint64_t now_us);
  void send(uint8_t* packet, size_t n);

  Stream& stream_;
  const std::string cname_;
  Address address_;  // the destination of our reports
  Address seen_;     // the source of the peer's reports when RTP and RTCP have separate ports
  uint64_t last_rtcp_us_ = 0, last_report_us_ = 0;
  uint32_t reported_packets_ = 0;
  uint32_t peer_sr_ = 0, peer_sr_ssrc_ = 0;
  uint64_t peer_sr_us_ = 0, next_report_us_ = 0;
};

}  // namespace media
