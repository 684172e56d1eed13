#include "noise_suppression.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

namespace media {

namespace {

/** The frame and the one before it. */
constexpr int kWindow = 2 * NoiseSuppression::kFrame;
constexpr int kTransform = 512;
/** The share of a band that always remains: -18 dB. Less sounds like music. */
constexpr float kFloor = 0.12F;
/** The noise of a band is this many times the least of its smoothed power, and is taken off twice. */
constexpr float kBias = 2.2F, kOver = 2;
/** The least is sought in the last two spans of this many frames, so that it follows louder noise. */
constexpr unsigned kSpan = 40;
/** A single frame counts this much, so that the beginning of speech is kept and peaks of noise are not. */
constexpr float kBeginning = 0.4F;
/** Smoothing of the power of a band, and of a falling gain, over frames. */
constexpr float kPowerMemory = 0.85F, kGainMemory = 0.5F;

using Spectrum = std::array<std::complex<float>, kTransform>;

struct Tables {
  std::array<float, kWindow> window;
  std::array<std::complex<float>, kTransform / 2> turns;
  Tables() {
    for (size_t at = 0; at < kWindow; ++at)
      window[at] = static_cast<float>(std::sin(M_PI * (static_cast<double>(at) + 0.5) / kWindow));
    for (size_t at = 0; at < kTransform / 2; ++at)
      turns[at] = std::polar(1.0F, static_cast<float>(-2 * M_PI * static_cast<double>(at) / kTransform));
  }
};

const Tables& tables() {
  static const Tables known;
  return known;
}

/** The discrete Fourier transform in place, by decimation in time (Cooley and Tukey, 1965). */
void transform(Spectrum& of) {
  for (size_t at = 1, turned = 0; at < kTransform; ++at) {
    size_t bit = kTransform >> 1;
    for (; turned & bit; bit >>= 1) turned ^= bit;
    turned ^= bit;
    if (at < turned) std::swap(of[at], of[turned]);
  }
  for (size_t length = 2; length <= kTransform; length <<= 1) {
    const size_t half = length / 2, step = kTransform / length;
    for (size_t low = 0; low < kTransform; low += length)
      for (size_t pair = 0; pair < half; ++pair) {
        const auto t = tables().turns[pair * step];
        const auto a = of[low + pair], b = of[low + pair + half];
        const std::complex<float> turned{b.real() * t.real() - b.imag() * t.imag(),
                                         b.real() * t.imag() + b.imag() * t.real()};
        of[low + pair] = a + turned;
        of[low + pair + half] = a - turned;
      }
  }
}

}  // namespace

/** Nothing is taken for noise before a whole span was heard: `least_` begins at zero. */
NoiseSuppression::NoiseSuppression() {
  static_assert(kSize == kTransform);
  least_before_.fill(std::numeric_limits<float>::infinity());
  gain_.fill(1);
}

void NoiseSuppression::take(const int16_t* frame, int16_t* out) {
  const auto& window = tables().window;
  Spectrum heard{};
  for (size_t at = 0; at < kFrame; ++at) {
    const auto sample = static_cast<float>(frame[at]);
    heard[at] = before_[at] * window[at];
    heard[at + kFrame] = sample * window[at + kFrame];
    before_[at] = sample;
  }
  transform(heard);
  if (frames_++ % kSpan == 0) {
    least_before_ = least_;
    least_.fill(std::numeric_limits<float>::infinity());
  }
  for (size_t bin = 0; bin < kBins; ++bin) {
    const float gain = gain_of(static_cast<int>(bin), std::norm(heard[bin]));
    // The inverse is the transform of the conjugate.
    heard[bin] = std::conj(heard[bin] * gain);
    if (bin != 0 && bin != kSize / 2) heard[kSize - bin] = std::conj(heard[bin]);
  }
  transform(heard);
  for (size_t at = 0; at < kFrame; ++at) {
    const float sample = tail_[at] + heard[at].real() * window[at] / kSize;
    out[at] = static_cast<int16_t>(std::lround(std::clamp(sample, -32768.0F, 32767.0F)));
    tail_[at] = heard[at + kFrame].real() * window[at + kFrame] / kSize;
  }
}

float NoiseSuppression::gain_of(int bin, float power) {
  const auto at = static_cast<size_t>(bin);
  const float smooth = power_[at] == 0 ? power : kPowerMemory * power_[at] + (1 - kPowerMemory) * power;
  power_[at] = smooth;
  least_[at] = std::min(least_[at], smooth);
  const float noise = kBias * std::min(least_[at], least_before_[at]);
  const float now = std::max({smooth, kBeginning * power, 1.0F});
  const float wanted = std::max(kFloor, 1 - kOver * noise / now);
  // Speech begins at once; noise fades.
  const float last = gain_[at];
  gain_[at] = wanted > last ? wanted : kGainMemory * last + (1 - kGainMemory) * wanted;
  return gain_[at];
}

}  // namespace media
