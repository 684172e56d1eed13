#include "resample.h"

#include <soxr.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace media {

Resampler::Resampler(int from_hz, int to_hz) : from_(from_hz), to_(to_hz) {
  const int g = std::gcd(from_hz, to_hz);
  up_ = to_hz / g;
  down_ = from_hz / g;
  if (up_ == down_) return;
  const double widen = std::max(1.0, static_cast<double>(down_) / up_);
  taps_ = (static_cast<int>(24 * widen) + 7) / 8 * 8;
  const double cutoff = 0.94 / widen, half = taps_ / 2.0;
  phases_.resize(static_cast<size_t>(up_ * taps_));
  for (int p = 0; p < up_; ++p) {
    double sum = 0;
    float* row = &phases_[static_cast<size_t>(p * taps_)];
    for (int t = 0; t < taps_; ++t) {
      const double x = t - half + 1 - static_cast<double>(p) / up_;
      const double w =
          std::abs(x) < half ? 0.42 + 0.5 * std::cos(M_PI * x / half) + 0.08 * std::cos(2 * M_PI * x / half) : 0;
      const double sinc = std::abs(x) < 1e-9 ? 1 : std::sin(M_PI * x * cutoff) / (M_PI * x * cutoff);
      row[t] = static_cast<float>(w * sinc);
      sum += row[t];
    }
    for (int t = 0; t < taps_; ++t) row[t] = static_cast<float>(row[t] / sum);
  }
  line_.assign(static_cast<size_t>(taps_ - 1), 0.0f);
}

int Resampler::run(const int16_t* in, int samples, int16_t* out) {
  if (up_ == down_) {
    std::memcpy(out, in, static_cast<size_t>(samples) * 2);
    return samples;
  }
  const size_t keep = static_cast<size_t>(taps_ - 1);
  line_.resize(keep + static_cast<size_t>(samples));
  for (int i = 0; i < samples; ++i) line_[keep + static_cast<size_t>(i)] = in[i];
  const int made = samples * up_ / down_;
  int at = 0, phase = 0;
  for (int n = 0; n < made; ++n) {
    const float* x = &line_[static_cast<size_t>(at)];
    const float* h = &phases_[static_cast<size_t>(phase * taps_)];
    float acc[8] = {};
    for (int t = 0; t < taps_; t += 8)
      for (int k = 0; k < 8; ++k) acc[k] += x[t + k] * h[t + k];
    const float y = (acc[0] + acc[1]) + (acc[2] + acc[3]) + (acc[4] + acc[5]) + (acc[6] + acc[7]);
    // The parentheses keep a macro of spandsp.h out, which the sanitizer builds see here.
    out[n] = static_cast<int16_t>((std::lrintf)(std::clamp(y, -32768.0f, 32767.0f)));
    phase += down_;
    at += phase / up_;
    phase %= up_;
  }
  std::memmove(line_.data(), line_.data() + samples, keep * sizeof(float));
  line_.resize(keep);
  return made;
}

std::vector<int16_t> resample_all(const int16_t* in, size_t samples, double from_hz, double to_hz) {
  std::vector<int16_t> out(static_cast<size_t>(std::ceil(static_cast<double>(samples) * to_hz / from_hz)));
  const soxr_io_spec_t io = soxr_io_spec(SOXR_INT16_I, SOXR_INT16_I);
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  const soxr_runtime_spec_t one = soxr_runtime_spec(1);
  size_t used = 0, made = 0;
  if (soxr_oneshot(from_hz, to_hz, 1, in, samples, &used, out.data(), out.size(), &made, &io, &quality, &one) !=
      nullptr)
    made = 0;
  out.resize(made);
  return out;
}

}  // namespace media
