// Finds speech and silence, in-band keys and the tones of a fax machine in received audio.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace media {

/** Tells speech from silence by energy over an adaptive floor, with hangover, in steps of 20 ms. */
class VoiceActivity {
 public:
  /** True when the state changed. `lasted_ms` is then the length of the state before. */
  bool take(const int16_t* pcm, int samples, int rate_hz);
  bool speaking() const { return speaking_; }
  uint32_t lasted_ms() const { return lasted_ms_; }

 private:
  double floor_ = 60;
  bool speaking_ = false;
  uint32_t state_ms_ = 0, lasted_ms_ = 0, loud_ms_ = 0, quiet_ms_ = 0;
};

/** Takes 8 kHz audio. */
class Detector {
 public:
  Detector();
  ~Detector();

  VoiceActivity voice;
  /** Writes the keys that were heard, one character each, at most `room`. Returns their number. */
  int keys(const int16_t* pcm, int samples, char* out, int room);
  /** Returns 1 for CNG (1100 Hz, T.30), 2 for CED (2100 Hz), 0 for nothing new. */
  int fax(const int16_t* pcm, int samples);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace media
