// Pauses as noise of a level (RFC 3389): the noise that is heard, and the level that a peer is told. Levels are 0 to
// 127 -dBov; 0 is a square wave of full scale.
#pragma once
#include <cstddef>
#include <cstdint>

namespace media {

/** Noise of the level that a comfort noise packet asks for. The spectral part, which §3.2 makes optional, is left out.
 * */
class ComfortNoise {
 public:
  void set(const uint8_t* payload, size_t n) {
    level_ = n > 0 ? payload[0] & 0x7f : 60;
    on_ = true;
  }
  bool on() const { return on_; }
  void off() { on_ = false; }
  /** `made_hz`: the rate that it is made at, when it is heard at a lower one: a resampler takes the rest of its power.
   * */
  void fill(int16_t* out, int samples, int made_hz = 1, int heard_hz = 1);

 private:
  bool on_ = false;
  int level_ = 60;
  uint32_t random_ = 0x12345678;
};

/** Decides when to tell a peer of a pause: when it begins, when its level changes, and often enough to be known as one.
 * */
class PauseReports {
 public:
  /** Takes noise of the pause. Returns the level to tell now, or -1. */
  int take(const int16_t* pcm, size_t samples, uint64_t now_us);
  /** Ends the pause, because somebody speaks. */
  void end() { told_ = -1; }

 private:
  double power_ = 0;
  int told_ = -1;
  uint64_t told_us_ = 0;
};

}  // namespace media
