// Mixes streams that may live on different packet threads. Each stream has a port, and one thread mixes all ports.
//
// Cost: mixing is a sum, and each participant who talks gets the sum without the own voice. All others hear the same
// mix, so that it is encoded once for each format among them.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "packet_format.h"
#include "recording.h"
#include "resample.h"
#include "tick.h"

namespace media {

class Recorder;

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

/** 20 ms of a mix. `packet` is what an encoder shared by its hearers made of it, in `format`; empty for a mix that only
 * one participant hears. */
struct Mix {
  std::array<int16_t, kMostTick> pcm;
  PacketFormat format;
  std::vector<uint8_t> packet;
};

/** Carries mixes from the mixing thread to the thread of a stream. */
class MixRing {
 public:
  void write(std::shared_ptr<const Mix> mix);
  /** Takes the oldest mix; null when there is none. */
  std::shared_ptr<const Mix> read();
  size_t held() const { return write_.load(std::memory_order_acquire) - read_.load(std::memory_order_acquire); }

 private:
  static constexpr size_t kSize = 8;
  std::array<std::shared_ptr<const Mix>, kSize> mixes_;
  std::atomic<size_t> write_{0}, read_{0};
};

class ConferencePort {
 public:
  ConferencePort(int rate_hz) : rate_hz(rate_hz) {}
  const int rate_hz;
  PcmRing in;   // audio from the stream
  MixRing out;  // audio to the stream
  std::atomic<bool> muted{false}, deaf{false}, left{false};
  uint32_t stream = 0;  // the owner of the port
  /** The only stream that hears this port, when the port is a coach's. 0: all streams do. */
  std::atomic<uint32_t> heard_by{0};
  /** The format of the packets that the stream sends, when it can take them from an encoder that it shares. */
  std::atomic<PacketFormat> format{PacketFormat{}};

  // Mixing thread only
  bool started = false;
  int quiet_ticks = 0;
};

/** The mix. One packet thread runs it. */
class Conference {
 public:
  static constexpr size_t kMost = 250;
  Conference(int rate_hz, Recorder& recorder) : rate_hz_(rate_hz), recorder_(recorder) {}
  /** Ends the recordings. */
  ~Conference();
  bool add(std::shared_ptr<ConferencePort> port);
  /** Mixes 20 ms. Each port gets the sum of the other ports that it may hear. */
  void tick(uint64_t now_us);
  /** Records the mix. With `named`, the audio of that stream is track 1. */
  void record(std::shared_ptr<Recording> recording, uint32_t named);
  void unrecord(const Recording* recording);
  size_t size() const { return seats_.size(); }
  int rate() const { return rate_hz_; }

 private:
  /** A participant in this tick. */
  struct Seat {
    std::shared_ptr<ConferencePort> port;
    bool any = false;      // audio came
    bool talks = false;    // the audio is part of the mix
    uint32_t only = 0;     // the only stream that hears it; 0: all streams do
    std::array<int16_t, kMostTick> heard;
  };
  /** An encoder for all hearers of one format. */
  struct Shared {
    PacketFormat format;
    std::unique_ptr<Encoder> encoder;
    std::unique_ptr<Resampler> resampler;
    std::shared_ptr<const Mix> mix;  // of this tick; null until a hearer needs it
    bool used = false;
  };
  struct Taken {
    std::shared_ptr<Recording> recording;
    uint32_t named;
    uint16_t seq = 0;
    uint32_t ts = 0;
  };
  void listen(Seat& seat);
  std::shared_ptr<const Mix> own_mix(const Seat& seat) const;
  std::shared_ptr<const Mix> shared_mix(PacketFormat format);
  std::shared_ptr<const Mix> encoded(Shared& shared) const;
  void write_recordings(uint64_t now_us);

  const int rate_hz_;
  Recorder& recorder_;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::vector<Shared> shared_;
  std::vector<Taken> recordings_;
  std::array<int32_t, kMostTick> sum_;
  std::array<int16_t, kMostTick> all_;  // the sum, clipped
};

}  // namespace media
