// Detects speech, in-band keys and fax tones in received audio.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace media {

/** Detects speech in steps of 20 ms by comparing the energy with an adaptive noise floor, with hangover. */
class VoiceActivity {
 public:
  /** Takes audio. True when speech began or ended; `lasted_ms` is then the length of the previous state. */
  bool take(const int16_t* pcm, int samples, int rate_hz);
  bool speaking() const { return speaking_; }
  uint32_t lasted_ms() const { return lasted_ms_; }

 private:
  double floor_ = 60;
  bool speaking_ = false;
  uint32_t state_ms_ = 0, lasted_ms_ = 0, loud_ms_ = 0, quiet_ms_ = 0;
};

/** The detectors of one stream. They take audio at 8 kHz. */
class Detector {
 public:
  Detector();
  ~Detector();

  VoiceActivity voice;
  /** Writes the detected keys to `out`, one character each, at most `room`. Returns their number. */
  int keys(const int16_t* pcm, int samples, char* out, int room);
  /** Returns 1 for a new CNG tone (1100 Hz, T.30), 2 for a new CED tone (2100 Hz), otherwise 0. */
  int fax(const int16_t* pcm, int samples);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace media
