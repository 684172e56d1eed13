// Reduces steady noise of a line, for detectors and recognisers.
#pragma once
#include <array>
#include <cstdint>

namespace media {

/** Spectral subtraction (Boll, 1979) with minimum statistics (Martin, 2001): what a band never falls below is its noise.
 * Takes frames of 20 ms at 8 kHz, and returns each 20 ms later. */
class NoiseSuppression {
 public:
  static constexpr int kFrame = 160;

  NoiseSuppression();
  /** Writes the cleaned frame before this one to `out`, which may be `frame`. */
  void take(const int16_t* frame, int16_t* out);

 private:
  static constexpr int kSize = 512, kBins = kSize / 2 + 1;

  float gain_of(int bin, float power);

  std::array<float, kBins> power_{}, least_{}, least_before_, gain_;
  std::array<float, kFrame> before_{}, tail_{};
  unsigned frames_ = 0;
};

}  // namespace media
