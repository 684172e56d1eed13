#include "recording.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace media {

namespace {
constexpr uint8_t kAudio = 0, kPause = 1, kResume = 2, kKey = 3, kEnd = 4;
/** The longest wait for reordered packets, and the time by which the file lags behind the present. */
constexpr uint64_t kReorderUs = 150'000, kBehindUs = 250'000;
/** How often to check a recording that is paused, or that can end by itself: people may be waiting for that end. */
constexpr uint64_t kPeriodUs = 250'000;
/** The root mean square below which a frame is silence: about -40 dBm0. */
constexpr double kQuiet = 230;
/** The longest block. Blocks have a power of two bytes and begin at multiples of their size, so that each is one folio
 * of the page cache: most of the cost of a write is per folio. Together with kBehindUs, a killed process loses at most
 * 1.3 s. */
constexpr int64_t kBlockMs = 1100;
/** The most pauses of one recording that its end reports. */
constexpr size_t kPauses = 1000;
constexpr int kLineSeconds = 4;  // the capacity of the desk for audio that is not in the file yet
}  // namespace

Recording::Recording(RecordConfig config, std::shared_ptr<ChunkPool> pool)
    : config_(std::move(config)), queue_(std::move(pool)) {}

void Recording::packet_audio(int track, uint32_t ssrc, uint16_t seq, uint32_t ts, uint32_t clock_rate, CodecId codec,
                             const uint8_t* payload, size_t bytes, uint64_t now_us) {
  const Head h{kAudio, static_cast<uint8_t>(track), static_cast<uint8_t>(codec), 0, seq, 0, ssrc, ts, clock_rate, now_us};
  if (!queue_.push(&h, sizeof h, payload, bytes)) ++dropped_;
}

void Recording::packet_pause(bool paused, bool silent, uint64_t now_us) {
  const Head h{paused ? kPause : kResume, silent, 0, 0, 0, 0, 0, 0, 0, now_us};
  if (!queue_.push(&h, sizeof h, &h, 0)) ++dropped_;
}

bool Recording::packet_key(char digit, uint64_t now_us) {
  if (config_.finish_keys.find(digit) == std::string::npos) return false;
  const Head h{kKey, 0, 0, static_cast<uint8_t>(digit), 0, 0, 0, 0, 0, now_us};
  if (!queue_.push(&h, sizeof h, &h, 0)) lost_end_ = static_cast<uint8_t>(RecordEnd::key);
  ending_ = true;
  return true;
}

void Recording::packet_end(RecordEnd reason, uint64_t now_us) {
  const Head h{kEnd, static_cast<uint8_t>(reason), 0, 0, 0, 0, 0, 0, 0, now_us};
  if (!queue_.push(&h, sizeof h, &h, 0)) lost_end_ = static_cast<uint8_t>(reason);
  ending_ = true;
}

/** Returns the last end of a file block at or before `position`. */
int64_t Recording::whole_blocks(int64_t position) const {
  const auto header = static_cast<int64_t>(WavFile::kHeader);
  return ((header + position * frame_bytes_) / block_bytes_ * block_bytes_ - header) / frame_bytes_;
}

uint64_t Recording::writer_due_us(uint64_t now_us) const {
  const uint64_t soon = now_us + kPeriodUs;
  if (paused_since_us_) return soon;
  const int64_t full = whole_blocks(flushed_ + block_bytes_ / frame_bytes_);
  const uint64_t due = start_us_ + paused_us_ + static_cast<uint64_t>(full) * 1'000'000 / config_.rate_hz + kBehindUs;
  return config_.max_ms || config_.silence_ms ? std::min(soon, due) : due;
}

void Recording::writer_open(uint64_t now_us) {
  start_us_ = now_us;
  capacity_ = static_cast<int64_t>(config_.rate_hz) * kLineSeconds;
  frame_bytes_ = config_.channels * 2;
  while (block_bytes_ * 2 <= frame_bytes_ * config_.rate_hz * kBlockMs / 1000) block_bytes_ *= 2;
  const int error = file_.open(config_.file, config_.channels, config_.rate_hz);
  if (error) {
    broken_ = true;
    detail_ = std::strerror(error);
    end(error == ENOSPC || error == EDQUOT ? RecordEnd::disk_full : RecordEnd::failed, 0);
  }
}

int64_t Recording::position(uint64_t at_us) const {
  const auto us = static_cast<int64_t>(at_us - start_us_) - static_cast<int64_t>(paused_us_);
  return us * config_.rate_hz / 1'000'000;
}

void Recording::end(RecordEnd reason, int64_t at) {
  if (reason_ != RecordEnd::none) return;
  reason_ = reason;
  end_at_ = std::max<int64_t>(at, 0);
}

/** Returns the position up to which the file can be written, because no later packet belongs before it. */
int64_t Recording::horizon(uint64_t now_us) const {
  const uint64_t until = present(now_us);
  return position(until - std::min(until - start_us_, kBehindUs));
}

/** The time up to which the file goes on: it stands still in a pause that it leaves out. */
uint64_t Recording::present(uint64_t at_us) const {
  return paused_since_us_ && !silent_ ? paused_since_us_ : at_us;
}

void Recording::pause(bool silent, uint64_t at_us) {
  if (paused_since_us_) return;
  paused_since_us_ = at_us;
  silent_ = silent;
  if (pauses_.size() < kPauses) pauses_.push_back({position(at_us) * 1000 / config_.rate_hz, -1, silent});
}

void Recording::resume(uint64_t at_us) {
  if (!paused_since_us_) return;
  const uint64_t lasted_us = at_us - paused_since_us_;
  if (!pauses_.empty() && pauses_.back().length_ms < 0)
    pauses_.back().length_ms = static_cast<int64_t>(lasted_us / 1000);
  if (!silent_) paused_us_ += lasted_us;
  paused_since_us_ = 0;
  for (auto& t : tracks_) {
    t.based = false;
    // The pause is no silence of the speaker.
    t.last_voice = std::max(t.last_voice, position(at_us));
  }
}

int64_t Recording::longest() const {
  return config_.max_ms ? static_cast<int64_t>(config_.max_ms) * config_.rate_hz / 1000 : INT64_MAX;
}

void Recording::take(RecordDesk& desk, const uint8_t* record, size_t size) {
  Head h;
  std::memcpy(&h, record, sizeof h);
  // After a disk stall many packets arrive at once. Flush before the audio exceeds the desk's lines.
  if (position(h.at_us) > flushed_ + capacity_ - config_.rate_hz) {
    place_due(desk, h.at_us, false);
    flush(desk, std::min(whole_blocks(horizon(h.at_us)), longest()));
    if (broken_) return;
  }
  if (h.kind == kPause) {
    // The packets before a pause have their places by the clock as it ran then. None of them waits for another.
    place_due(desk, h.at_us, true);
    pause(h.track != 0, h.at_us);
  } else if (h.kind == kResume) {
    resume(h.at_us);
  } else if (h.kind == kKey) {
    key_ = static_cast<char>(h.digit);
    end(RecordEnd::key, position(present(h.at_us)));
  } else if (h.kind == kEnd) {
    const int64_t at = position(present(h.at_us));
    resume(h.at_us);
    end(static_cast<RecordEnd>(h.track), at);
  } else if (!paused_since_us_ && h.track < kTracks) {
    Track& t = tracks_[h.track];
    int64_t order = t.any ? t.last_order + static_cast<int16_t>(h.seq - static_cast<uint16_t>(t.last_order)) : h.seq;
    // Packets of a new source, or of a source that restarted its numbering, follow all others.
    if (t.any && (h.ssrc != t.ssrc || order < t.last_order - 1000)) order = (t.last_order / 65536 + 2) * 65536 + h.seq;
    t.ssrc = h.ssrc;
    if (!t.any || order > t.last_order) t.last_order = order;
    t.any = true;
    const Packet p{order, h.ts, h.clock_rate, static_cast<CodecId>(h.codec), h.at_us};
    if (t.pending.empty() && t.done_order && order == t.done_order + 1)
      return place(desk, h.track, p, record + sizeof h, size - sizeof h);
    auto at = t.pending.end();
    while (at != t.pending.begin() && (at - 1)->packet.order > order) --at;
    t.pending.insert(at, Pending{p, {record + sizeof h, record + size}});
  }
}

/** Places a packet by its arrival. The network may have held it up: then a packet that waits behind it came earlier
 * than their timestamps say, and tells when this one was due. */
void Recording::rebase(Track& t, const Packet& p) {
  const int64_t arrived = position(p.at_us);
  int64_t due = arrived;
  for (const auto& [q, payload] : t.pending) {
    if (q.order <= p.order || q.clock_rate != p.clock_rate) continue;
    // The writer may come late. The same packets decide then.
    if (q.at_us > p.at_us + kReorderUs) break;
    const int64_t after = int64_t{static_cast<int32_t>(q.ts - p.ts)} * config_.rate_hz / p.clock_rate;
    const int64_t told = position(q.at_us) - after;
    // Timestamps that jump tell nothing.
    if (told >= arrived - config_.rate_hz / 2) due = std::min(due, told);
  }
  t.base_ts = p.ts;
  // Sound from before the beginning of the file is cut off.
  t.base = t.next ? std::max(due, t.next) : due;
  t.based = true;
  t.least_late = INT64_MAX;
  t.window_us = p.at_us;
}

/** Keeps the sender's clock in step with ours by assuming no delay for the earliest packet of every two seconds. */
void Recording::steer(Track& t, const Packet& p, int64_t pos) {
  t.least_late = std::min(t.least_late, position(p.at_us) - pos);
  if (p.at_us - t.window_us < 2'000'000) return;
  const int64_t limit = config_.rate_hz / 200;
  if (t.least_late > limit || t.least_late < -limit) t.base += t.least_late;
  t.least_late = INT64_MAX;
  t.window_us = p.at_us;
}

void Recording::put(RecordDesk& desk, Track& t, int64_t pos, const int16_t* pcm, int samples) {
  const int64_t from = std::max({pos, t.next, flushed_}), to = std::min(pos + samples, flushed_ + capacity_);
  t.next = std::max(t.next, to);
  if (from >= to || t.channel == kUnheard) return;
  const auto channel = static_cast<size_t>(t.channel);
  int16_t* const line = desk.line[channel].data();
  auto at = static_cast<size_t>(from - flushed_);
  const auto end = static_cast<size_t>(to - flushed_);
  const int16_t* source = pcm + (from - pos);
  for (const size_t both = std::min(end, used_[channel]); at < both; ++at, ++source)
    line[at] = static_cast<int16_t>(std::clamp(line[at] + *source, -32768, 32767));
  if (at < end) std::memcpy(line + at, source, (end - at) * sizeof *line);
  used_[channel] = std::max(used_[channel], end);
}

/** Notes the last position with sound, for recordings that end after silence. */
void Recording::measure(Track& t, int64_t pos, const int16_t* pcm, int samples) const {
  if (!config_.silence_ms || samples <= 0) return;
  int64_t energy = 0;
  for (int i = 0; i < samples; ++i) energy += int32_t{pcm[i]} * pcm[i];
  if (std::sqrt(static_cast<double>(energy) / samples) > kQuiet) t.last_voice = pos + samples;
}

void Recording::place(RecordDesk& desk, int track, const Packet& p, const uint8_t* payload, size_t bytes) {
  Track& t = tracks_[track];
  if (t.channel != kUnheard && (track < 2 || tracks_[0].channel == kUnheard)) heard_ = true;
  if (t.codec != p.codec || t.clock_rate != p.clock_rate) {
    const Codec* codec = find_codec(p.codec);
    t.codec = p.codec;
    t.clock_rate = p.clock_rate;
    // Opus decodes at any rate. Samples have the rate of their clock.
    const int rate = p.codec == CodecId::opus      ? config_.rate_hz
                     : p.codec == CodecId::samples ? static_cast<int>(p.clock_rate)
                                                   : 0;
    t.decoder = codec && codec->available() ? codec->decoder(rate) : nullptr;
    t.resampler = t.decoder && t.decoder->sample_rate() != config_.rate_hz
                      ? std::make_unique<Resampler>(t.decoder->sample_rate(), config_.rate_hz)
                      : nullptr;
    t.based = false;
  }
  if (!t.decoder || p.clock_rate == 0) return;
  const auto at = [&] {
    return t.base + static_cast<int64_t>(static_cast<int32_t>(p.ts - t.base_ts)) * config_.rate_hz / p.clock_rate;
  };
  const bool continued = t.based && p.order == t.done_order + 1;
  if (!t.based) rebase(t, p);
  int64_t pos = at();
  // Rebase when the packet's position is farther from its arrival than any network delay, because the sender's
  // timestamps jumped, or after such a long gap that the clocks may have drifted apart.
  if (std::abs(position(p.at_us) - pos) > config_.rate_hz / 2 || p.at_us > t.last_us + 2'000'000) {
    rebase(t, p);
    pos = at();
  }
  t.last_us = p.at_us;
  steer(t, p, pos);
  pos = at();
  // Move the base to this packet, so that timestamps may wrap.
  t.base = pos;
  t.base_ts = p.ts;

  const auto convert = [&](int samples) -> std::pair<const int16_t*, int> {
    if (!t.resampler) return {desk.decoded.data(), samples};
    return {desk.converted.data(), t.resampler->run(desk.decoded.data(), samples, desk.converted.data())};
  };
  const int64_t gap = pos - t.next;
  const bool small_gap = t.done_order && gap > 0 && gap <= config_.rate_hz * 6 / 100;
  if (small_gap && (!continued || gap < config_.rate_hz / 50)) {
    // Conceal a loss or a clock correction instead of leaving silence.
    const int unit = t.decoder->sample_rate() / 100;
    const int samples = static_cast<int>((gap * t.decoder->sample_rate() / config_.rate_hz + unit - 1) / unit * unit);
    t.decoder->conceal(desk.decoded.data(), samples, nullptr, 0);
    const auto [pcm, n] = convert(samples);
    put(desk, t, t.next, pcm, static_cast<int>(std::min<int64_t>(n, gap)));
  }
  const int samples = t.decoder->decode(payload, static_cast<int>(bytes), desk.decoded.data(), kMaxFrameSamples);
  t.done_order = p.order;
  if (samples <= 0) return;
  const auto [pcm, n] = convert(samples);
  measure(t, pos, pcm, n);
  put(desk, t, pos, pcm, n);
}

void Recording::place_due(RecordDesk& desk, uint64_t now_us, bool all) {
  for (int i = 0; i < kTracks; ++i) {
    Track& t = tracks_[i];
    size_t done = 0;
    for (; done < t.pending.size(); ++done) {
      const auto& [p, payload] = t.pending[done];
      // The next packet in sequence need not wait.
      const bool next = t.done_order && p.order == t.done_order + 1;
      if (!all && !next && now_us - p.at_us < kReorderUs) break;
      if (t.done_order && p.order <= t.done_order) continue;
      place(desk, i, p, payload.data(), payload.size());
    }
    t.pending.erase(t.pending.begin(), t.pending.begin() + static_cast<std::ptrdiff_t>(done));
  }
}

void Recording::flush(RecordDesk& desk, int64_t to) {
  if (broken_) return;
  while (flushed_ < to) {
    const auto n = static_cast<size_t>(std::min(to - flushed_, capacity_));
    const int16_t* samples = desk.line[0].data();
    if (config_.channels == 2) {
      if (desk.interleaved.size() < n * 2) desk.interleaved.resize(n * 2);
      int16_t* const out = desk.interleaved.data();
      const int16_t *const left = samples, *const right = desk.line[1].data();
      for (size_t i = 0; i < n; ++i) {
        out[2 * i] = left[i];
        out[2 * i + 1] = right[i];
      }
      samples = out;
    }
    if (const int error = file_.append(samples, n * static_cast<size_t>(config_.channels))) {
      broken_ = true;
      detail_ = std::strerror(error);
      reason_ = RecordEnd::none;
      end(error == ENOSPC || error == EDQUOT || error == EFBIG ? RecordEnd::disk_full : RecordEnd::failed, flushed_);
      return;
    }
    for (size_t channel = 0; channel < 2; ++channel) {
      size_t& used = used_[channel];
      int16_t* const line = desk.line[channel].data();
      const size_t left = used > n ? used - n : 0;
      std::memmove(line, line + n, left * sizeof *line);
      if (used > left) std::memset(line + left, 0, (used - left) * sizeof *line);
      used = left;
    }
    flushed_ += static_cast<int64_t>(n);
  }
}

/** Copies the audio that is not in the file yet to the desk. */
void Recording::take_out(RecordDesk& desk) {
  for (size_t channel = 0; channel < 2; ++channel) {
    auto& line = desk.line[channel];
    if (line.size() < static_cast<size_t>(capacity_)) line.resize(static_cast<size_t>(capacity_), 0);
    std::copy(kept_[channel].begin(), kept_[channel].end(), line.begin());
    used_[channel] = kept_[channel].size();
  }
}

void Recording::put_away(RecordDesk& desk) {
  for (size_t channel = 0; channel < 2; ++channel) {
    const auto from = desk.line[channel].begin(), to = from + static_cast<std::ptrdiff_t>(used_[channel]);
    kept_[channel].assign(from, to);
    std::fill(from, to, int16_t{0});
  }
}

bool Recording::writer_advance(RecordDesk& desk, uint64_t now_us) {
  if (broken_) return true;
  take_out(desk);
  advance(desk, now_us);
  put_away(desk);
  return reason_ != RecordEnd::none;
}

void Recording::advance(RecordDesk& desk, uint64_t now_us) {
  if (reason_ == RecordEnd::none)
    queue_.read([&](const uint8_t* record, size_t size) {
      take(desk, record, size);
      return reason_ == RecordEnd::none;
    });
  if (broken_) return;
  const auto lost = static_cast<RecordEnd>(lost_end_.load());
  if (lost != RecordEnd::none) end(lost, position(now_us));
  const int64_t max = longest();
  place_due(desk, now_us, reason_ != RecordEnd::none);
  if (reason_ == RecordEnd::none) {
    const int64_t safe = horizon(now_us);
    if (safe >= max) {
      end(RecordEnd::max_length, max);
    } else if (config_.silence_ms && !paused_since_us_) {
      const int64_t quiet = safe - tracks_[0].last_voice;
      if (quiet >= static_cast<int64_t>(config_.silence_ms) * config_.rate_hz / 1000) end(RecordEnd::silence, safe);
    }
    flush(desk, reason_ == RecordEnd::none ? whole_blocks(safe) : std::min(safe, max));
    return;
  }
  if (end_at_ >= max) {
    end_at_ = max;
    reason_ = RecordEnd::max_length;
  }
  flush(desk, end_at_);
}

void Recording::trim() {
  const auto channels = static_cast<uint64_t>(config_.channels);
  const uint64_t frame = static_cast<uint64_t>(config_.rate_hz / 50), total = file_.frames();
  std::vector<int16_t> block(frame * channels);
  const auto loud = [&](uint64_t at) {
    const size_t n = file_.read(at, block.data(), block.size());
    double energy = 0;
    for (size_t i = 0; i < n; ++i) energy += static_cast<double>(block[i]) * block[i];
    return n > 0 && std::sqrt(energy / static_cast<double>(n)) > kQuiet;
  };
  uint64_t from = 0, to = total / frame * frame;
  while (from < to && !loud(from)) from += frame;
  while (to > from && !loud(to - frame)) to -= frame;
  if (from > 0 || to < total) file_.keep(from, to);
  for (auto& p : pauses_) {
    const int64_t last = static_cast<int64_t>((to - from) * 1000 / static_cast<uint64_t>(config_.rate_hz));
    p.at_ms = std::clamp<int64_t>(p.at_ms - static_cast<int64_t>(from * 1000 / static_cast<uint64_t>(config_.rate_hz)), 0, last);
  }
}

void Recording::writer_finish(Event& e) {
  static const char* const kNames[] = {"",           "stopped",    "silence",   "key",
                                       "max_length", "leg_closed", "disk_full", "failed"};
  const bool open = !(broken_ && flushed_ == 0 && file_.frames() == 0 && reason_ == RecordEnd::failed);
  if (config_.trim && !broken_) trim();
  e.type = EventType::record_ended;
  e.id = config_.id;
  e.text = kNames[static_cast<size_t>(reason_)];
  e.detail = detail_;
  if (key_) e.detail = std::string(1, key_);
  e.a = static_cast<int64_t>(file_.frames() * 1000 / static_cast<uint64_t>(config_.rate_hz));
  e.b = open ? static_cast<int64_t>(file_.bytes()) : 0;
  e.flag = !heard_;
  e.pauses = std::move(pauses_);
  for (auto& p : e.pauses) p.length_ms = std::max<int64_t>(p.length_ms, 0);
  e.sha256 = open ? file_.sha256() : "";
  if (const int error = file_.close(); error && reason_ != RecordEnd::disk_full) e.detail = std::strerror(error);
}

}  // namespace media
