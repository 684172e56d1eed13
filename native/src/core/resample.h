// Converts between the rates of telephony while audio flows, without rounding lengths: 20 ms in, 20 ms out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace media {

/** Polyphase FIR; a windowed sinc of 24 zero crossings. Delay: 12 samples of the lower rate. */
class Resampler {
 public:
  Resampler(int from_hz, int to_hz);

  int from() const { return from_; }
  int to() const { return to_; }
  /** `samples` times the ratio must be a whole number. Returns the samples written. */
  int run(const int16_t* in, int samples, int16_t* out);

 private:
  const int from_, to_;
  int up_ = 1, down_ = 1, taps_ = 0;
  std::vector<float> phases_;  // up_ rows of taps_
  std::vector<float> line_;    // the last taps_ - 1 samples, then the block
};

/** Converts a whole piece of audio at once, by any ratio, with soxr. */
std::vector<int16_t> resample_all(const int16_t* in, size_t samples, double from_hz, double to_hz);

}  // namespace media
