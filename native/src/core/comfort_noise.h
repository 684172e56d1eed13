// Comfort noise (RFC 3389): generates the noise of a pause, and decides when to report its level to a peer. Levels are
// 0 to 127 -dBov; 0 is a full-scale square wave.
#pragma once
#include <cstddef>
#include <cstdint>

namespace media {

/** Generates noise of the level in a comfort noise packet. Ignores the spectral part, which §3.2 makes optional. */
class ComfortNoise {
 public:
  void set(const uint8_t* payload, size_t n) {
    level_ = n > 0 ? payload[0] & 0x7f : 60;
    on_ = true;
  }
  bool on() const { return on_; }
  void off() { on_ = false; }
  /** Fills `out` at the rate `made_hz`. Raises the level when `heard_hz` is lower, because resampling down removes part
   * of the power. */
  void fill(int16_t* out, int samples, int made_hz = 1, int heard_hz = 1);

 private:
  bool on_ = false;
  int level_ = 60;
  uint32_t random_ = 0x12345678;
};

/** Decides when to report a pause to a peer: at its start, when its level changes, and at least every 500 ms. */
class PauseReports {
 public:
  /** Takes noise of the pause. Returns the level to report now, or -1. */
  int take(const int16_t* pcm, size_t samples, uint64_t now_us);
  /** Ends the pause, because somebody speaks. */
  void end() { told_ = -1; }

 private:
  double power_ = 0;
  int told_ = -1;
  uint64_t told_us_ = 0;
};

}  // namespace media
