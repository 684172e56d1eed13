// Generates tones, and measures the level of audio and of a frequency in it.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

namespace signal {

inline std::vector<int16_t> tone(double hz, int rate, double seconds, double amplitude = 8000) {
  std::vector<int16_t> out(static_cast<size_t>(rate * seconds));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<int16_t>(amplitude * std::sin(2 * M_PI * hz * static_cast<double>(i) / rate));
  return out;
}

inline double rms(const int16_t* p, size_t n) {
  double e = 0;
  for (size_t i = 0; i < n; ++i) e += static_cast<double>(p[i]) * p[i];
  return n ? std::sqrt(e / static_cast<double>(n)) : 0;
}
inline double rms(const std::vector<int16_t>& v) {
  return rms(v.data(), v.size());
}

/** Returns the amplitude of the component at `hz`. */
inline double at(const int16_t* p, size_t n, double hz, int rate) {
  double re = 0, im = 0;
  for (size_t i = 0; i < n; ++i) {
    re += p[i] * std::cos(2 * M_PI * hz * static_cast<double>(i) / rate);
    im += p[i] * std::sin(2 * M_PI * hz * static_cast<double>(i) / rate);
  }
  return 2 * std::sqrt(re * re + im * im) / static_cast<double>(n);
}

inline double decibels(double ratio) {
  return 20 * std::log10(ratio);
}

}  // namespace signal
