#include "player.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace media {

bool Player::next_piece() {
  at_ = 0;
  flushed_ = false;
  std::fill(std::begin(phase_), std::end(phase_), 0.0);
  if (++piece_ < pieces_.size()) return true;
  piece_ = 0;
  // Stop after a loop without a single sample: it would never end.
  if (!advanced_) return false;
  advanced_ = false;
  return loops_ == 0 || ++loop_ < loops_;
}

int Player::pull_pcm(const Piece& p, int16_t* out, int samples, int rate_hz) {
  const auto& pcm = *p.samples;
  if (p.rate_hz == rate_hz) {
    const size_t n = std::min(pcm.size() - at_, static_cast<size_t>(samples));
    std::memcpy(out, pcm.data() + at_, n * 2);
    at_ += n;
    return static_cast<int>(n);
  }
  if (!resampler_ || resampler_->from() != p.rate_hz || resampler_->to() != rate_hz)
    resampler_ = std::make_unique<Resampler>(p.rate_hz, rate_hz);
  // Blocks of 10 ms make every resampling ratio whole. Silence pads the last block.
  const size_t block = static_cast<size_t>(p.rate_hz / 100);
  while (fifo_.size() < static_cast<size_t>(samples) && at_ < pcm.size()) {
    int16_t in[480] = {}, made[480];
    const size_t n = std::min(block, pcm.size() - at_);
    std::memcpy(in, pcm.data() + at_, n * 2);
    at_ += n;
    const int got = resampler_->run(in, static_cast<int>(block), made);
    fifo_.insert(fifo_.end(), made, made + got * static_cast<int>(n) / static_cast<int>(block));
  }
  const size_t n = std::min(fifo_.size(), static_cast<size_t>(samples));
  std::memcpy(out, fifo_.data(), n * 2);
  fifo_.erase(fifo_.begin(), fifo_.begin() + static_cast<std::ptrdiff_t>(n));
  return static_cast<int>(n);
}

int Player::pull_tone(const Piece& p, int16_t* out, int samples, int rate_hz) {
  const auto per_ms = static_cast<uint64_t>(rate_hz / 1000);
  const uint64_t period = (p.on_ms + p.off_ms) * per_ms;
  const uint64_t left =
      p.total_ms ? p.total_ms * per_ms - std::min(at_, p.total_ms * per_ms) : static_cast<uint64_t>(samples);
  const int n = static_cast<int>(std::min<uint64_t>(left, static_cast<uint64_t>(samples)));
  // 0 dBm0 is a sine 3.14 dB below full scale (ITU-T G.711 table 5).
  const double amplitude = 32767.0 * std::pow(10.0, (p.level_dbm0 - 3.14) / 20.0);
  for (int i = 0; i < n; ++i, ++at_) {
    double y = 0;
    if (p.kind == Piece::Kind::tone && at_ % period < p.on_ms * per_ms) {
      for (int k = 0; k < p.tones; ++k) {
        y += amplitude * std::sin(phase_[k]);
        phase_[k] += 2 * M_PI * p.hz[k] / rate_hz;
        if (phase_[k] > 2 * M_PI) phase_[k] -= 2 * M_PI;
      }
    }
    out[i] = static_cast<int16_t>(std::clamp(y, -32767.0, 32767.0));
  }
  return n;
}

int Player::pull(int16_t* out, int samples, int rate_hz) {
  int made = 0;
  while (made < samples && piece_ < pieces_.size()) {
    const Piece& p = pieces_[piece_];
    const int got = p.kind == Piece::Kind::pcm ? pull_pcm(p, out + made, samples - made, rate_hz)
                                               : pull_tone(p, out + made, samples - made, rate_hz);
    made += got;
    if (got > 0) advanced_ = true;
    if (made < samples && !next_piece()) {
      piece_ = pieces_.size();
      break;
    }
  }
  played_us_ += static_cast<uint64_t>(made) * 1'000'000 / static_cast<uint64_t>(rate_hz);
  return made;
}

void Feed::add(std::shared_ptr<const std::vector<int16_t>> samples, int rate_hz, bool yields) {
  if (chunks_.size() >= kMaxChunks || held_ > kMaxSeconds * static_cast<size_t>(rate_hz)) return;
  held_ += samples->size();
  chunks_.push_back({std::move(samples), rate_hz, 0, {}, yields});
}

void Feed::mark(std::string name) {
  if (chunks_.size() < kMaxChunks) chunks_.push_back({nullptr, 0, 0, std::move(name), false});
}

void Feed::take_due_marks(std::vector<std::string>& passed) {
  while (!chunks_.empty() && !chunks_.front().samples) {
    last_mark_ = chunks_.front().mark;
    since_mark_us_ = 0;
    passed.push_back(std::move(chunks_.front().mark));
    chunks_.pop_front();
  }
}

/** Reads up to `block` samples of pieces that have the rate of the first one. */
size_t Feed::read(int16_t* in, size_t block, std::vector<std::string>& passed) {
  const int rate = chunks_.front().rate_hz;
  size_t n = 0;
  while (n < block) {
    take_due_marks(passed);
    if (chunks_.empty() || chunks_.front().rate_hz != rate) break;
    Chunk& c = chunks_.front();
    const size_t more = std::min(block - n, c.samples->size() - c.at);
    std::memcpy(in + n, c.samples->data() + c.at, more * 2);
    n += more;
    c.at += more;
    held_ -= more;
    fifo_yields_ = c.yields;
    if (c.at >= c.samples->size()) chunks_.pop_front();
  }
  return n;
}

void Feed::pull(int16_t* out, int samples, int rate_hz, std::vector<std::string>& passed) {
  const auto want = static_cast<size_t>(samples);
  while (fifo_.size() < want) {
    take_due_marks(passed);
    if (chunks_.empty()) break;
    const int from_hz = chunks_.front().rate_hz;
    const size_t block = static_cast<size_t>(from_hz / 100);
    // Silence pads the last block before another rate or the end: within a sound it would click.
    int16_t in[480] = {}, made[480];
    const size_t n = read(in, block, passed);
    if (!resampler_ || resampler_->from() != from_hz || resampler_->to() != rate_hz)
      resampler_ = std::make_unique<Resampler>(from_hz, rate_hz);
    const int got = resampler_->run(in, static_cast<int>(block), made);
    fifo_.insert(fifo_.end(), made, made + got * static_cast<int>(n) / static_cast<int>(block));
  }
  const size_t n = std::min(want, fifo_.size());
  std::memcpy(out, fifo_.data(), n * 2);
  std::memset(out + n, 0, (want - n) * 2);
  fifo_.erase(fifo_.begin(), fifo_.begin() + static_cast<std::ptrdiff_t>(n));
  since_mark_us_ += n * 1'000'000 / static_cast<uint64_t>(rate_hz);
  if (fifo_.empty()) take_due_marks(passed);
}

bool Feed::yields() const {
  if (!fifo_.empty()) return fifo_yields_;
  for (const auto& c : chunks_)
    if (c.samples) return c.yields;
  return false;
}

void Feed::clear(std::vector<std::string>& passed) {
  for (auto& c : chunks_)
    if (!c.samples) passed.push_back(std::move(c.mark));
  chunks_.clear();
  fifo_.clear();
  held_ = 0;
}

}  // namespace media
