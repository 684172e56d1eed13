#include "conference.h"

#include <algorithm>
#include <cstring>

namespace media {

void PcmRing::write(const int16_t* pcm, size_t n) {
  const size_t at = write_.load(std::memory_order_relaxed);
  if (n > kSize - (at - read_.load(std::memory_order_acquire))) return;
  for (size_t i = 0; i < n; ++i) samples_[(at + i) % kSize] = pcm[i];
  write_.store(at + n, std::memory_order_release);
}

bool PcmRing::read(int16_t* pcm, size_t n) {
  const size_t at = read_.load(std::memory_order_relaxed);
  if (write_.load(std::memory_order_acquire) - at < n) return false;
  for (size_t i = 0; i < n; ++i) pcm[i] = samples_[(at + i) % kSize];
  read_.store(at + n, std::memory_order_release);
  return true;
}

bool Conference::add(std::shared_ptr<ConferencePort> port) {
  if (ports_.size() >= kMost) return false;
  ports_.push_back(std::move(port));
  return true;
}

void Conference::tick() {
  std::erase_if(ports_, [](const auto& p) { return p->left.load(std::memory_order_acquire); });
  const auto n = static_cast<size_t>(rate_hz_ / 50);
  static thread_local int16_t heard[kMost][960];
  static thread_local bool any[kMost];
  static thread_local uint32_t only[kMost];  // the only stream that hears the port; 0: all streams do
  int32_t sum[960] = {};
  for (size_t k = 0; k < ports_.size(); ++k) {
    ConferencePort& p = *ports_[k];
    // Two frames absorb the difference between two threads' clocks. More than four would only add delay.
    if (!p.started && p.in.held() >= 2 * n) p.started = true;
    while (p.in.held() > 4 * n) p.in.read(heard[k], n);
    any[k] = p.started && p.in.read(heard[k], n);
    if (p.started && !any[k]) p.started = false;
    if (p.muted.load(std::memory_order_relaxed)) any[k] = false;
    only[k] = p.heard_by.load(std::memory_order_relaxed);
    if (!any[k] || only[k]) continue;
    for (size_t i = 0; i < n; ++i) sum[i] += heard[k][i];
  }
  int16_t mix[960];
  for (size_t k = 0; k < ports_.size(); ++k) {
    ConferencePort& p = *ports_[k];
    const bool deaf = p.deaf.load(std::memory_order_relaxed);
    int32_t own[960];
    for (size_t i = 0; i < n; ++i) own[i] = sum[i] - (any[k] && !only[k] ? heard[k][i] : 0);
    for (size_t j = 0; j < ports_.size(); ++j)
      if (any[j] && only[j] && only[j] == p.stream)
        for (size_t i = 0; i < n; ++i) own[i] += heard[j][i];
    for (size_t i = 0; i < n; ++i) mix[i] = deaf ? int16_t{0} : static_cast<int16_t>(std::clamp(own[i], -32768, 32767));
    p.out.write(mix, n);
  }
}

}  // namespace media
