// Measures the audible difference of two pieces of speech, in the manner of PESQ: compares the level of each Bark band
// every 10 ms. Aligns the speech piece by piece, because networks delay it and jitter buffers adjust the delay.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

namespace spectrum {

constexpr int kWindow = 256, kHop = 80;
constexpr std::array<double, 17> kEdges = {100,  200,  300,  400,  510,  630,  770,  920, 1080,
                                           1270, 1480, 1720, 2000, 2320, 2700, 3150, 3700};
using Bands = std::array<double, kEdges.size() - 1>;

/** Computes the discrete Fourier transform of kWindow values in place: radix 2, decimation in time (Cooley, Tukey). */
inline void transform(std::array<std::complex<double>, kWindow>& x) {
  for (size_t i = 1, j = 0; i < kWindow; ++i) {
    size_t bit = kWindow >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (size_t span = 2; span <= kWindow; span <<= 1) {
    const auto root = std::polar(1.0, -2 * M_PI / static_cast<double>(span));
    for (size_t at = 0; at < kWindow; at += span) {
      std::complex<double> turn = 1;
      for (size_t i = at; i < at + span / 2; ++i, turn *= root) {
        const auto odd = turn * x[i + span / 2];
        x[i + span / 2] = x[i] - odd;
        x[i] += odd;
      }
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
  std::array<std::complex<double>, kWindow> x;
  for (size_t at = 0; at + kWindow <= pcm.size(); at += kHop) {
    for (size_t i = 0; i < kWindow; ++i) x[i] = pcm[at + i] * window[i];
    transform(x);
    Bands energy{};
    size_t band = 0;
    for (size_t bin = 1; bin < kWindow / 2; ++bin) {
      const double hz = static_cast<double>(bin) * rate / kWindow;
      while (band < energy.size() && hz >= kEdges[band + 1]) ++band;
      if (band == energy.size()) break;
      if (hz >= kEdges[0]) energy[band] += std::norm(x[bin]);
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
  const auto a = bands(reference, rate), b = bands(heard, rate);
  double loudest = 0;
  for (const auto& frame : a) loudest = std::max(loudest, sum(frame));
  // Energy 40 dB below the mean band of the loudest frame is inaudible.
  const double floor = loudest * 1e-4 / static_cast<double>(kEdges.size());
  const auto apart = [&](const Bands& x, const Bands& y) {
    double all = 0;
    for (size_t i = 0; i < x.size(); ++i) all += std::abs(10 * std::log10((x[i] + floor) / (y[i] + floor)));
    return all / static_cast<double>(x.size());
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
        all += i + shift < b.size() ? apart(a[i], b[i + shift]) : 40;
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
