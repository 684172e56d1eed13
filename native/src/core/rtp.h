// RTP packets (RFC 3550 §5.1): parses untrusted packets, writes headers, keeps statistics of received packets.
#pragma once
#include <cstddef>
#include <cstdint>

namespace media {

/** The largest accepted datagram. A larger one cannot cross an Ethernet without fragmentation. */
constexpr size_t kMaxPacket = 1600;
constexpr size_t kRtpHeader = 12;

/*   0                   1                   2                   3
 *  |V=2|P|X|  CC   |M|     PT      |       sequence number         |
 *  |                           timestamp                           |
 *  |             synchronization source (SSRC) identifier          |  then CSRCs, extension, payload, padding */
struct RtpView {
  uint8_t payload_type = 0;
  bool marker = false;
  uint16_t seq = 0;
  uint32_t ts = 0;
  uint32_t ssrc = 0;
  size_t header = 0;   // bytes before the payload: fixed header, CSRCs, extension
  size_t payload = 0;  // bytes of payload, without padding
};

/** Reports whether the bytes can be RTP or RTCP, and not STUN or DTLS (RFC 7983). */
inline bool looks_like_rtp(const uint8_t* p, size_t n) {
  return n >= kRtpHeader && (p[0] & 0xc0) == 0x80;
}
/** Reports whether the bytes are RTCP. RFC 5761 §4: with rtcp-mux, packet types 192 to 223 are RTCP. */
inline bool looks_like_rtcp(const uint8_t* p, size_t n) {
  return n >= 8 && (p[0] & 0xc0) == 0x80 && p[1] >= 192 && p[1] <= 223;
}

/** Parses the header and checks its CSRC and extension lengths against `n`. Ignores padding, which SRTP encrypts. */
bool parse_rtp_header(const uint8_t* p, size_t n, RtpView& out);
/** Parses the header and the padding. */
bool parse_rtp(const uint8_t* p, size_t n, RtpView& out);

void write_rtp_header(uint8_t* p, uint8_t payload_type, bool marker, uint16_t seq, uint32_t ts, uint32_t ssrc);

/** The statistics that RFC 3550 requires a receiver to keep about a source. */
class ReceiveStats {
 public:
  enum class Verdict { fresh, reordered, duplicate, doubtful };

  /** Counts a packet. `doubtful`: its number is so far off that the next packet must confirm it (RFC 3550 A.1). */
  Verdict take(uint32_t ssrc, uint16_t seq, uint32_t ts, uint32_t clock_rate, uint64_t now_us, bool audio);

  bool started() const { return started_; }
  uint32_t ssrc() const { return ssrc_; }
  uint16_t max_seq() const { return max_seq_; }
  uint32_t extended_max() const { return cycles_ + max_seq_; }
  uint64_t lost() const;
  double jitter_units() const { return jitter_; }
  uint32_t clock_rate() const { return clock_rate_; }
  double jitter_ms() const { return clock_rate_ ? jitter_ * 1000.0 / clock_rate_ : 0; }
  double jitter_max_ms() const { return jitter_max_ms_; }
  uint64_t ssrc_changes() const { return ssrc_changes_; }
  uint64_t bursts() const { return bursts_; }
  uint64_t longest_burst() const { return longest_burst_; }

  struct Interval {
    uint8_t fraction_lost;
    int32_t cumulative_lost;
  };
  /** Returns the loss since the last call, for a report block. */
  Interval report();

 private:
  void restart(uint32_t ssrc, uint16_t seq);

  bool started_ = false;
  uint32_t ssrc_ = 0;
  uint16_t max_seq_ = 0, bad_seq_ = 0;
  bool has_bad_ = false;
  uint32_t cycles_ = 0, base_ = 0;
  uint64_t seen_ = 0;  // bit n: the packet max_seq - n was received
  uint64_t received_ = 0, lost_before_ = 0;
  uint64_t expected_prior_ = 0, received_prior_ = 0;
  uint64_t ssrc_changes_ = 0, bursts_ = 0, longest_burst_ = 0;
  uint32_t clock_rate_ = 0, last_ts_ = 0;
  uint64_t last_at_us_ = 0;
  double jitter_ = 0, jitter_max_ms_ = 0;
  bool timed_ = false;
};

}  // namespace media
