// Mixes streams that may live on different packet threads. Each stream has a port, and one thread mixes all ports.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace media {

/** Carries about 160 ms of PCM from one thread, the writer, to another, the reader. */
class PcmRing {
 public:
  /** Appends samples. Drops all of them when they do not fit. */
  void write(const int16_t* pcm, size_t n);
  /** Takes `n` samples. False when the ring holds fewer; it then keeps them. */
  bool read(int16_t* pcm, size_t n);
  size_t held() const { return write_.load(std::memory_order_acquire) - read_.load(std::memory_order_acquire); }

 private:
  static constexpr size_t kSize = 4096;
  int16_t samples_[kSize];
  std::atomic<size_t> write_{0}, read_{0};
};

class ConferencePort {
 public:
  ConferencePort(int rate_hz) : rate_hz(rate_hz) {}
  const int rate_hz;
  PcmRing in, out;  // audio from the stream, audio to the stream
  std::atomic<bool> muted{false}, deaf{false}, left{false};
  uint32_t stream = 0;  // the owner of the port
  /** The only stream that hears this port, when the port is a coach's. 0: all streams do. */
  std::atomic<uint32_t> heard_by{0};
  bool started = false;  // mixing thread only
};

/** The mix. One packet thread runs it. */
class Conference {
 public:
  static constexpr size_t kMost = 32;
  explicit Conference(int rate_hz) : rate_hz_(rate_hz) {}
  bool add(std::shared_ptr<ConferencePort> port);
  /** Mixes 20 ms. Each port gets the sum of the other ports that it may hear. */
  void tick();
  size_t size() const { return ports_.size(); }
  int rate() const { return rate_hz_; }

 private:
  const int rate_hz_;
  std::vector<std::shared_ptr<ConferencePort>> ports_;
};

}  // namespace media
