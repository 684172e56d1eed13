// Turns received packets into PCM on a steady clock, with an adaptive jitter buffer of 20 to 200 ms, concealment and
// comfort noise. Only decoded streams have a decode path; relayed streams have none.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "../codec/codec.h"
#include "comfort_noise.h"
#include "counters.h"
#include "resample.h"

namespace media {

/** What a piece of audio is: nothing (no packet came), sound, the noise of a pause that the sender announced, or the
 * silence of an idle stream. */
enum class Heard : uint8_t { nothing, sound, pause, idle };

class DecodePath {
 public:
  DecodePath(int rate_hz, StreamCounters& counters);

  /** Returns the rate of the PCM that `pull` writes, in Hz. */
  int rate() const { return rate_; }
  void insert(uint16_t seq, uint32_t ts, CodecId codec, bool comfort_noise, const uint8_t* payload, size_t bytes,
              uint64_t now_us);
  /** Returns the RTP timestamp that the sender gave to what is pulled next, give or take a packet. */
  uint32_t position() const { return expected_ts_; }
  /** Returns the rate of its clock, in Hz; 0 before the first packet. */
  uint32_t clock_rate() const { return codec_ ? codec_->clock_rate : 0; }
  /** Drops the held packets. Called when the source changes. */
  void reset();
  /** Writes the next 20 ms of audio. */
  Heard pull(int16_t* out, uint64_t now_us);

 private:
  static constexpr int kSlots = 64;
  static constexpr size_t kSlotBytes = 1280;
  struct Slot {
    bool used = false, noise = false;
    CodecId codec = CodecId::other;
    uint16_t seq = 0, bytes = 0;
    uint32_t ts = 0;
    uint64_t at_us = 0;
  };
  Slot& slot(uint16_t seq) { return slots_[seq % kSlots]; }
  uint8_t* data(uint16_t seq) { return &bytes_[(seq % kSlots) * kSlotBytes]; }
  bool use_codec(CodecId codec);
  void append(const int16_t* pcm, int samples, bool pause);
  void play(Slot& s);
  void fill(int ms, const Slot* next);
  bool take_in_time(uint16_t seq, uint64_t now_us);
  bool start(uint64_t now_us);
  void produce();
  bool fill_pause(const Slot& s);
  void bridge_loss();
  void run_empty();
  void adapt(uint64_t now_us);
  void drop_frame();
  size_t frame() const { return static_cast<size_t>(rate_ / 50); }
  int ahead_ms() const;

  const int rate_;
  StreamCounters& counters_;
  std::vector<Slot> slots_;
  std::vector<uint8_t> bytes_;
  const Codec* codec_ = nullptr;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<Resampler> resampler_;
  std::vector<int16_t> fifo_;
  std::vector<int16_t> decoded_, converted_;
  ComfortNoise noise_;
  size_t pause_tail_ = 0;  // the number of samples at the end of fifo_ that are the noise of a pause
  bool any_ = false, playing_ = false;
  bool may_pause_ = false;  // after its last packet the sender may pause
  bool pausing_ = false;    // the last samples added to fifo_ are the noise of a pause
  uint16_t next_ = 0, newest_ = 0;
  uint32_t expected_ts_ = 0, newest_ts_ = 0;
  int held_ = 0, frame_ms_ = 20, empty_ms_ = 0, target_ms_ = 40, insert_ms_ = 0;
  int least_ahead_ms_ = 1000, observed_ms_ = 0;
  uint64_t calm_since_us_ = 0;
};

}  // namespace media
