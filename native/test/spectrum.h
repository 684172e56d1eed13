// Measures the audible difference of two pieces of speech, in the manner of PESQ: compares the level of each Bark band
// every 10 ms. Aligns the speech piece by piece, because networks delay it and jitter buffers adjust the delay.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace spectrum {

constexpr int kWindow = 256, kHop = 80;
constexpr std::array<double, 17> kEdges = {100,  200,  300,  400,  510,  630,  770,  920, 1080,
                                           1270, 1480, 1720, 2000, 2320, 2700, 3150, 3700};
using Bands = std::array<double, kEdges.size() - 1>;

/**
 * Computes the discrete Fourier transform of kWindow values in place: radix 2, decimation in time (Cooley, Tukey). The
 * tests are compiled without optimization, in which each operator of std::complex would be a call.
 */
inline void transform(double* re, double* im) {
  static const auto turns = [] {
    std::array<double, kWindow> w{};
    for (size_t i = 0; i < kWindow; ++i) w[i] = std::cos(2 * M_PI * static_cast<double>(i) / kWindow);
    return w;
  }();
  const double* cosine = turns.data();
  for (size_t i = 1, j = 0; i < kWindow; ++i) {
    size_t bit = kWindow >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i >= j) continue;
    std::swap(re[i], re[j]);
    std::swap(im[i], im[j]);
  }
  for (size_t half = 1; half < kWindow; half <<= 1) {
    const size_t step = kWindow / 2 / half;
    for (size_t at = 0; at < kWindow; at += 2 * half)
      for (size_t i = 0; i < half; ++i) {
        // The turn is e^(-2 pi i / (2 half)); the sine is the cosine a quarter of a turn earlier.
        const double c = cosine[i * step], s = -cosine[(i * step + kWindow * 3 / 4) % kWindow];
        const size_t even = at + i, odd = even + half;
        const double odd_re = c * re[odd] - s * im[odd], odd_im = c * im[odd] + s * re[odd];
        re[odd] = re[even] - odd_re;
        im[odd] = im[even] - odd_im;
        re[even] += odd_re;
        im[even] += odd_im;
      }
  }
}

/** Returns the energy of each Bark band, every 10 ms. */
inline std::vector<Bands> bands(const std::vector<int16_t>& pcm, int rate) {
  static const auto window = [] {
    std::array<double, kWindow> w{};
    for (size_t i = 0; i < kWindow; ++i) w[i] = 0.5 - 0.5 * std::cos(2 * M_PI * static_cast<double>(i) / kWindow);
    return w;
  }();
  std::vector<Bands> out;
  double re[kWindow], im[kWindow];
  for (size_t at = 0; at + kWindow <= pcm.size(); at += kHop) {
    for (size_t i = 0; i < kWindow; ++i) {
      re[i] = pcm[at + i] * window[i];
      im[i] = 0;
    }
    transform(re, im);
    Bands energy{};
    size_t band = 0;
    for (size_t bin = 1; bin < kWindow / 2; ++bin) {
      const double hz = static_cast<double>(bin) * rate / kWindow;
      while (band < energy.size() && hz >= kEdges[band + 1]) ++band;
      if (band == energy.size()) break;
      if (hz >= kEdges[0]) energy[band] += re[bin] * re[bin] + im[bin] * im[bin];
    }
    out.push_back(energy);
  }
  return out;
}

inline double sum(const Bands& b) {
  double all = 0;
  for (const double e : b) all += e;
  return all;
}

/** Returns the mean difference of the bands' levels in dB, over the frames in which the reference contains speech. */
inline double distance_db(const std::vector<int16_t>& reference, const std::vector<int16_t>& heard, int rate) {
  const auto a = bands(reference, rate);
  double loudest = 0;
  for (const auto& frame : a) loudest = std::max(loudest, sum(frame));
  // Energy 40 dB below the mean band of the loudest frame is inaudible.
  const double floor = loudest * 1e-4 / static_cast<double>(kEdges.size());
  const auto levels = [floor](std::vector<Bands> frames) {
    for (auto& frame : frames)
      for (double& level : frame) level = 10 * std::log10(level + floor);
    return frames;
  };
  const auto x = levels(a), y = levels(bands(heard, rate));
  const auto apart = [](const double* one, const double* other) {
    double all = 0;
    for (size_t i = 0; i + 1 < kEdges.size(); ++i) all += std::abs(one[i] - other[i]);
    return all / static_cast<double>(kEdges.size() - 1);
  };
  // Align pieces of half a second, each at its best match within 400 ms.
  constexpr size_t kPiece = 50, kReach = 40;
  double total = 0;
  size_t frames = 0;
  for (size_t at = 0; at < a.size(); at += kPiece) {
    double best = 1e9;
    size_t spoken = 0;
    for (size_t shift = 0; shift <= kReach; ++shift) {
      double all = 0;
      spoken = 0;
      for (size_t i = at; i < std::min(at + kPiece, a.size()); ++i) {
        if (sum(a[i]) < loudest * 1e-3) continue;
        ++spoken;
        all += i + shift < y.size() ? apart(x[i].data(), y[i + shift].data()) : 40;
      }
      best = std::min(best, all);
    }
    if (spoken == 0) continue;
    total += best;
    frames += spoken;
  }
  return frames ? total / static_cast<double>(frames) : 0;
}

}  // namespace spectrum
