#include "taps.h"

#include <algorithm>
#include <utility>

#include "stream.h"

namespace media {

namespace {
/** All that `media/methods.ts` lets hear a stream at once: 4 streams, 4 listeners and 4 recognitions of two tracks each,
 * 8 copies, a relay and a detection. */
constexpr size_t kMostTaps = 34;
}

void Taps::add(TapOptions o, uint64_t now_us) {
  remove(o.id);
  if (taps_.size() >= kMostTaps) return;
  auto quieter = o.suppress_noise ? std::make_unique<NoiseSuppression>() : nullptr;
  const auto chunk = static_cast<size_t>(o.rate_hz / 1000 * o.chunk_ms);
  taps_.push_back({std::move(o.id), o.sent, o.rate_hz, chunk, {}, nullptr, std::move(quieter), now_us});
}

void Taps::remove(const std::string& id) {
  std::erase_if(taps_, [&](const Tap& t) { return t.id == id; });
}

int Taps::wideband_rate() const {
  for (const auto& t : taps_)
    if (!t.sent && t.rate_hz > 8000) return t.rate_hz;
  return 0;
}

void Taps::take(const Stream& of, bool sent, const int16_t* pcm, int samples, int rate_hz) {
  for (auto& t : taps_) {
    if (t.sent != sent) continue;
    if (!t.resampler || t.resampler->from() != rate_hz) t.resampler = std::make_unique<Resampler>(rate_hz, t.rate_hz);
    int16_t converted[kMaxFrameSamples];
    const int n = t.resampler->run(pcm, samples, converted);
    if (t.quieter && n == NoiseSuppression::kFrame) t.quieter->take(converted, converted);
    t.held.insert(t.held.end(), converted, converted + n);
    while (t.held.size() >= t.chunk) tell_chunk(of, t);
  }
}

void Taps::pause(const Stream& of, uint64_t length_us, uint64_t now_us) {
  for (auto& t : taps_) {
    if (!t.sent) continue;
    const auto us = [&](size_t samples) { return samples * 1'000'000 / static_cast<uint64_t>(t.rate_hz); };
    // A clock that jumps, or began before the tap, is no pause: the tap is never ahead of the time.
    const uint64_t told_us = t.began_us + us(t.emitted + t.held.size());
    const uint64_t most_us = now_us > told_us ? now_us - told_us : 0;
    t.paused_us = std::min(t.paused_us + std::min(length_us, most_us), most_us);
    if (t.paused_us < us(t.chunk)) continue;
    if (!t.held.empty()) {
      t.paused_us -= us(t.chunk - t.held.size());
      t.held.resize(t.chunk);
      tell_chunk(of, t);
    }
    const uint64_t chunks = t.paused_us / us(t.chunk);
    t.emitted += chunks * t.chunk;
    t.paused_us -= us(chunks * t.chunk);
  }
}

void Taps::tell_chunk(const Stream& of, Tap& t) {
  const auto end = t.held.begin() + static_cast<std::ptrdiff_t>(t.chunk);
  Event e = of.event_of(EventType::tap);
  e.id = t.id;
  e.a = static_cast<int64_t>(t.emitted * 1000 / static_cast<uint64_t>(t.rate_hz));
  e.samples.assign(t.held.begin(), end);
  t.held.erase(t.held.begin(), end);
  t.emitted += t.chunk;
  of.tell(std::move(e));
}

}  // namespace media
