#include "comfort_noise.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace media {

namespace {
constexpr int kLevelStepDb = 3;
constexpr uint64_t kLeastUs = 100'000, kMostUs = 500'000;
}  // namespace

void ComfortNoise::fill(int16_t* out, int samples, int made_hz, int heard_hz) {
  // Uniform noise of amplitude a has a root mean square of a / sqrt 3. Limit the level to -20 dBov: no quiet room is
  // louder.
  const double lost = made_hz > heard_hz ? static_cast<double>(made_hz) / heard_hz : 1;
  const int amplitude = static_cast<int>(32767 * std::pow(10.0, -std::max(level_, 20) / 20.0) * std::sqrt(3 * lost));
  for (int i = 0; i < samples; ++i) {
    random_ = random_ * 1664525u + 1013904223u;
    out[i] = static_cast<int16_t>((static_cast<int>(random_ >> 16) - 32768) * amplitude / 32768);
  }
}

int PauseReports::take(const int16_t* pcm, size_t samples, uint64_t now_us) {
  double power = 0;
  for (size_t i = 0; i < samples; ++i) power += static_cast<double>(pcm[i]) * pcm[i];
  power /= static_cast<double>(std::max<size_t>(samples, 1));
  // Average over about 100 ms, because the level of a single frame of noise is random.
  power_ = told_ < 0 ? power : power_ + (power - power_) / 5;
  const double dbov = 10 * std::log10(power_ / (32767.0 * 32767) + 1e-13);
  const int level = std::clamp(static_cast<int>(std::lround(-dbov)), 0, 127);
  const uint64_t since = now_us - told_us_;
  const bool due = told_ < 0 || since >= kMostUs || (since >= kLeastUs && std::abs(level - told_) >= kLevelStepDb);
  if (!due) return -1;
  told_ = level;
  told_us_ = now_us;
  return level;
}

}  // namespace media
