// Resamples live audio between the rates of telephony without rounding lengths: 20 ms in, 20 ms out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace media {

/** A polyphase FIR resampler: a windowed sinc with 24 zero crossings. Its delay is 12 samples of the lower rate. */
class Resampler {
 public:
  Resampler(int from_hz, int to_hz);

  int from() const { return from_; }
  int to() const { return to_; }
  /** Resamples a block and returns the samples written. `samples` times the ratio must be a whole number. */
  int run(const int16_t* in, int samples, int16_t* out);

 private:
  const int from_, to_;
  int up_ = 1, down_ = 1, taps_ = 0;
  std::vector<float> phases_;  // up_ rows of taps_
  std::vector<float> line_;    // the last taps_ - 1 samples, then the block
};

/** Resamples a whole piece of audio by any ratio, with soxr. */
std::vector<int16_t> resample_all(const int16_t* in, size_t samples, double from_hz, double to_hz);

}  // namespace media
