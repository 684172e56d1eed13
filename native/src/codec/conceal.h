// Conceals losses for codecs that cannot: repeats the last pitch period and fades it out, as in G.711 Appendix I.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace media {

class Concealer {
 public:
  explicit Concealer(int sample_rate) : rate_(sample_rate), history_(static_cast<size_t>(sample_rate / 1000 * 40)) {}

  /** Remembers decoded audio. After a loss, blends the start of the audio with the concealment before it. */
  void heard(int16_t* pcm, int samples) {
    if (lost_ > 0) {
      const int blend = std::min(samples, rate_ / 1000 * 4);
      std::vector<int16_t>& tail = scratch_;
      tail.resize(static_cast<size_t>(blend));
      fill(tail.data(), blend);
      for (int i = 0; i < blend; ++i)
        pcm[i] = static_cast<int16_t>((pcm[i] * (i + 1) + tail[static_cast<size_t>(i)] * (blend - i - 1)) / blend);
      lost_ = 0;
    }
    remember(pcm, samples);
  }

  void conceal(int16_t* out, int samples) {
    if (lost_ == 0) {
      std::rotate(history_.begin(), history_.begin() + static_cast<std::ptrdiff_t>(oldest_), history_.end());
      oldest_ = 0;
      pitch_ = find_pitch();
      at_ = 0;
    }
    fill(out, samples);
  }

 private:
  void remember(const int16_t* pcm, int samples) {
    const size_t size = history_.size(), n = std::min(size, static_cast<size_t>(samples));
    const int16_t* const last = pcm + samples - n;
    const size_t first = std::min(n, size - oldest_);
    std::memcpy(history_.data() + oldest_, last, first * 2);
    std::memcpy(history_.data(), last + first, (n - first) * 2);
    oldest_ = first < n ? n - first : (oldest_ + n) % size;
  }

  void fill(int16_t* out, int samples) {
    const int16_t* period = history_.data() + history_.size() - static_cast<size_t>(pitch_);
    for (int i = 0; i < samples; ++i) {
      // Full level for 10 ms, then a fade to silence at 60 ms.
      const int fade = std::clamp(lost_ - rate_ / 100, 0, rate_ / 20);
      out[i] = static_cast<int16_t>(period[at_] * (rate_ / 20 - fade) / (rate_ / 20));
      at_ = (at_ + 1) % pitch_;
      ++lost_;
    }
  }

  /** Returns the lag, 2.5 to 15 ms in steps of 1/8000 s, at which the last 5 ms best match the audio before them. */
  int find_pitch() const {
    const int step = rate_ / 8000, window = rate_ / 1000 * 5, size = static_cast<int>(history_.size());
    const int16_t* end = history_.data() + size - window;
    int best = rate_ / 1000 * 10;
    double best_score = 0;
    for (int lag = rate_ / 1000 * 5 / 2; lag <= rate_ / 1000 * 15; lag += step) {
      double cross = 0, energy = 1;
      for (int i = 0; i < window; i += step) {
        cross += static_cast<double>(end[i]) * end[i - lag];
        energy += static_cast<double>(end[i - lag]) * end[i - lag];
      }
      const double score = cross > 0 ? cross * cross / energy : 0;
      if (score > best_score * 1.001) {
        best_score = score;
        best = lag;
      }
    }
    return best;
  }

  const int rate_;
  std::vector<int16_t> history_, scratch_;  // history_: a ring; in order from the start of a loss
  size_t oldest_ = 0;
  int lost_ = 0, pitch_ = 1, at_ = 0;
};

}  // namespace media
