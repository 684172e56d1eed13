#include "rtp.h"

#include <algorithm>
#include <cmath>

#include "bytes.h"

namespace media {

bool parse_rtp_header(const uint8_t* p, size_t n, RtpView& out) {
  if (!looks_like_rtp(p, n)) return false;
  size_t header = kRtpHeader + 4u * (p[0] & 0x0f);
  if (p[0] & 0x10) {
    if (n < header + 4) return false;
    header += 4 + 4u * get16(p + header + 2);
  }
  if (n < header) return false;
  out.payload_type = p[1] & 0x7f;
  out.marker = p[1] & 0x80;
  out.seq = get16(p + 2);
  out.ts = get32(p + 4);
  out.ssrc = get32(p + 8);
  out.header = header;
  out.payload = n - header;
  return true;
}

bool parse_rtp(const uint8_t* p, size_t n, RtpView& out) {
  if (!parse_rtp_header(p, n, out)) return false;
  if (p[0] & 0x20) {
    const size_t padding = p[n - 1];
    if (padding == 0 || padding > out.payload) return false;
    out.payload -= padding;
  }
  return true;
}

void write_rtp_header(uint8_t* p, uint8_t payload_type, bool marker, uint16_t seq, uint32_t ts, uint32_t ssrc) {
  p[0] = 0x80;
  p[1] = static_cast<uint8_t>((marker ? 0x80 : 0) | (payload_type & 0x7f));
  put16(p + 2, seq);
  put32(p + 4, ts);
  put32(p + 8, ssrc);
}

void ReceiveStats::restart(uint32_t ssrc, uint16_t seq) {
  if (started_) {
    lost_before_ = lost();
    if (ssrc != ssrc_) ++ssrc_changes_;
  }
  started_ = true;
  ssrc_ = ssrc;
  max_seq_ = seq;
  base_ = seq;
  cycles_ = 0;
  seen_ = 1;
  received_ = 0;
  expected_prior_ = received_prior_ = 0;
  has_bad_ = false;
  timed_ = false;
}

ReceiveStats::Verdict ReceiveStats::take(uint32_t ssrc, uint16_t seq, uint32_t ts, uint32_t clock_rate, uint64_t now_us,
                                         bool audio) {
  Verdict verdict = Verdict::fresh;
  if (!started_ || ssrc != ssrc_) {
    restart(ssrc, seq);
  } else {
    const uint16_t ahead = static_cast<uint16_t>(seq - max_seq_);
    if (ahead == 0) return Verdict::duplicate;
    if (ahead < 3000) {
      if (ahead > 1) {
        if (ahead > 2) ++bursts_;
        longest_burst_ = std::max<uint64_t>(longest_burst_, ahead - 1u);
      }
      if (seq < max_seq_) cycles_ += 0x10000;
      max_seq_ = seq;
      seen_ = ahead < 64 ? (seen_ << ahead) | 1 : 1;
      has_bad_ = false;
    } else if (ahead > 0xffff - 63) {
      const uint64_t bit = uint64_t{1} << static_cast<uint16_t>(max_seq_ - seq);
      if (seen_ & bit) return Verdict::duplicate;
      seen_ |= bit;
      verdict = Verdict::reordered;
    } else if (has_bad_ && seq == bad_seq_) {
      // Two packets in order: the sender restarted its numbering without a new SSRC.
      restart(ssrc, seq);
    } else {
      has_bad_ = true;
      bad_seq_ = static_cast<uint16_t>(seq + 1);
      return Verdict::doubtful;
    }
  }
  ++received_;
  if (audio && verdict == Verdict::fresh && clock_rate) {
    if (timed_ && clock_rate == clock_rate_) {
      const double gap = static_cast<double>(now_us - last_at_us_) * clock_rate / 1e6;
      const double d = std::fabs(gap - static_cast<int32_t>(ts - last_ts_));
      // A pause of the sender (DTX, hold with a stopped clock) is not network jitter.
      if (d < clock_rate) jitter_ += (d - jitter_) / 16.0;
      jitter_max_ms_ = std::max(jitter_max_ms_, jitter_ms());
    }
    clock_rate_ = clock_rate;
    last_ts_ = ts;
    last_at_us_ = now_us;
    timed_ = true;
  }
  return verdict;
}

uint64_t ReceiveStats::lost() const {
  if (!started_) return lost_before_;
  const uint64_t expected = uint64_t{extended_max()} - base_ + 1;
  return lost_before_ + (expected > received_ ? expected - received_ : 0);
}

ReceiveStats::Interval ReceiveStats::report() {
  const uint64_t expected = uint64_t{extended_max()} - base_ + 1;
  const uint64_t due = expected - expected_prior_, got = received_ - received_prior_;
  expected_prior_ = expected;
  received_prior_ = received_;
  Interval out{};
  out.fraction_lost = due == 0 || got >= due ? 0 : static_cast<uint8_t>(((due - got) << 8) / due);
  const int64_t lost = static_cast<int64_t>(expected) - static_cast<int64_t>(received_);
  out.cumulative_lost = static_cast<int32_t>(std::clamp<int64_t>(lost, -0x800000, 0x7fffff));
  return out;
}

}  // namespace media
