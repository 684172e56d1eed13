// Received packets to PCM on a steady clock: adaptive jitter buffer of 20 to 200 ms, concealment, comfort noise.
// Only where audio is decoded on the packet thread; a relayed stream has none of this.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "../codec/codec.h"
#include "comfort_noise.h"
#include "counters.h"
#include "resample.h"

namespace media {

/** What some audio is: nothing came; sound; the noise of a pause that the sender has announced. */
enum class Heard : uint8_t { nothing, sound, pause };

class DecodePath {
 public:
  DecodePath(int rate_hz, StreamCounters& counters);

  /** Of the PCM that `pull` gives. */
  int rate() const { return rate_; }
  void insert(uint16_t seq, uint32_t ts, CodecId codec, bool comfort_noise, const uint8_t* payload, size_t bytes,
              uint64_t now_us);
  /** The source has changed: what is held belongs to the past. */
  void reset();
  /** 20 ms of audio. */
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
  bool start(uint64_t now_us);
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
  size_t pause_tail_ = 0;  // samples at the end of fifo_ that are the noise of a pause
  bool any_ = false, playing_ = false;
  bool may_pause_ = false;  // the last packet said that the sender may fall silent after it
  bool pausing_ = false;    // what was added to fifo_ last is the noise of a pause
  uint16_t next_ = 0, newest_ = 0;
  uint32_t expected_ts_ = 0, newest_ts_ = 0;
  int held_ = 0, frame_ms_ = 20, empty_ms_ = 0, target_ms_ = 40, insert_ms_ = 0;
  int least_ahead_ms_ = 1000, observed_ms_ = 0;
  uint64_t calm_since_us_ = 0;
};

}  // namespace media
