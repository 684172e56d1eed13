// What can be heard in received audio: speech and silence, keys pressed in-band, the tones of a fax machine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace media {

/** Speech against silence by energy over an adaptive floor, with hangover: 20 ms steps. */
class VoiceActivity {
 public:
  /** True when the state changed; `lasted_ms` is the length of what ended. */
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
  /** Keys heard, one character each; at most `room`. */
  int keys(const int16_t* pcm, int samples, char* out, int room);
  /** 0 nothing new, 1 CNG (1100 Hz, T.30), 2 CED (2100 Hz). */
  int fax(const int16_t* pcm, int samples);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace media
