// Counters with one writer and any number of readers. They cost as little as plain numbers, because the writer needs no
// atomic read-modify-write.
#pragma once
#include <atomic>
#include <cstdint>

namespace media {

template <typename T>
class Cell {
 public:
  void operator+=(T n) { v_.store(v_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  void operator++() { *this += 1; }
  void operator=(T n) { v_.store(n, std::memory_order_relaxed); }
  operator T() const { return v_.load(std::memory_order_relaxed); }

 private:
  std::atomic<T> v_{};
};

using Count = Cell<uint64_t>;

/** The counters of one stream. They outlive the stream, so that a last reading is never a race. */
struct StreamCounters {
  // Each received packet writes the first cache line, each sent packet the second.
  alignas(64) Count packets_received;
  Count bytes_received, lost, bursts, longest_burst, ssrc_changes;
  Cell<double> jitter_ms, jitter_max_ms;
  alignas(64) Count packets_sent;
  Count bytes_sent;
  Cell<const char*> receive_codec, send_codec;
  Count duplicate, reordered, strangers, malformed;
  Count policed, unexpected, srtp_auth_failed, srtp_replayed, keys_received, send_failed;
  Count rtcp_received, rtcp_sent, concealed, late;
  // The jitter of each second in which packets came, summed; the mean is their quotient.
  Count jitter_seconds;
  Cell<double> jitter_sum_ms;
  // Gaps of more than a second between packets that were due: those that are over, and the one that lasts.
  Count gaps_ms, gap_ms;
  Cell<double> rtt_ms, remote_fraction_lost, remote_jitter_ms, jitter_buffer_ms;
  Cell<int64_t> remote_lost;
  Cell<bool> remote_known, rtt_known, latched;
  Cell<int64_t> first_packet_ms, last_packet_ms;  // since the epoch; 0 before the first packet
};

struct ThreadCounters {
  Count packets_received, packets_sent, wakeups, late_ticks, packet_ring_drops;
  Cell<int64_t> streams, packet_ring_streams;
};

}  // namespace media
