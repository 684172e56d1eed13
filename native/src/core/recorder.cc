#include "recorder.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "clock.h"

namespace media {

namespace {
constexpr uint8_t kAudio = 0, kPause = 1, kResume = 2, kKey = 3, kEnd = 4;
/** How long a packet may be overtaken by later ones, and how far the file stays behind the present. */
constexpr uint64_t kReorderUs = 150'000, kBehindUs = 250'000;
constexpr uint64_t kPeriodUs = 250'000;
/** Root mean square below which a frame is silence: about -40 dBm0. */
constexpr double kSilence = 230;
constexpr int kLineSeconds = 5;  // what the line holds beyond what is in the file
}  // namespace

Recording::Recording(RecordConfig config)
    : config_(std::move(config)), ring_(128 * 1024), decoded_(2 * kMaxFrameSamples), converted_(2 * kMaxFrameSamples) {}

void Recording::packet_audio(int track, uint32_t ssrc, uint16_t seq, uint32_t ts, uint32_t clock_rate, CodecId codec,
                             const uint8_t* payload, size_t bytes, uint64_t now_us) {
  const Head h{kAudio, static_cast<uint8_t>(track), static_cast<uint8_t>(codec), 0, seq, ssrc, ts, clock_rate, now_us};
  if (!ring_.push(&h, sizeof h, payload, bytes)) ++dropped_;
}

void Recording::packet_pause(bool paused, uint64_t now_us) {
  const Head h{paused ? kPause : kResume, 0, 0, 0, 0, 0, 0, 0, now_us};
  if (!ring_.push(&h, sizeof h, &h, 0)) ++dropped_;
}

bool Recording::packet_key(char digit, uint64_t now_us) {
  if (config_.finish_keys.find(digit) == std::string::npos) return false;
  const Head h{kKey, 0, 0, static_cast<uint8_t>(digit), 0, 0, 0, 0, now_us};
  if (!ring_.push(&h, sizeof h, &h, 0)) lost_end_ = static_cast<uint8_t>(RecordEnd::key);
  return true;
}

void Recording::packet_end(RecordEnd reason, uint64_t now_us) {
  const Head h{kEnd, static_cast<uint8_t>(reason), 0, 0, 0, 0, 0, 0, now_us};
  if (!ring_.push(&h, sizeof h, &h, 0)) lost_end_ = static_cast<uint8_t>(reason);
}

void Recording::writer_open(uint64_t now_us) {
  start_us_ = now_us;
  capacity_ = static_cast<int64_t>(config_.rate_hz) * kLineSeconds;
  line_.assign(static_cast<size_t>(capacity_ * config_.channels), 0);
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

void Recording::take(const std::vector<uint8_t>& record) {
  Head h;
  std::memcpy(&h, record.data(), sizeof h);
  if (h.kind == kPause) {
    if (!paused_since_us_) paused_since_us_ = h.at_us;
  } else if (h.kind == kResume) {
    if (!paused_since_us_) return;
    paused_us_ += h.at_us - paused_since_us_;
    paused_since_us_ = 0;
    for (auto& t : tracks_) t.based = false;
  } else if (h.kind == kKey) {
    key_ = static_cast<char>(h.digit);
    end(RecordEnd::key, position(paused_since_us_ ? paused_since_us_ : h.at_us));
  } else if (h.kind == kEnd) {
    end(static_cast<RecordEnd>(h.track), position(paused_since_us_ ? paused_since_us_ : h.at_us));
  } else if (!paused_since_us_ && h.track < kTracks) {
    Track& t = tracks_[h.track];
    int64_t order = t.any ? t.last_order + static_cast<int16_t>(h.seq - static_cast<uint16_t>(t.last_order)) : h.seq;
    // Another source, or one that began its numbering anew: its packets come after all others, whatever their numbers.
    if (t.any && (h.ssrc != t.ssrc || order < t.last_order - 1000)) order = (t.last_order / 65536 + 2) * 65536 + h.seq;
    t.ssrc = h.ssrc;
    if (!t.any || order > t.last_order) t.last_order = order;
    t.any = true;
    const Packet p{order, h.ts, h.clock_rate, static_cast<CodecId>(h.codec), h.at_us};
    if (t.pending.empty() && t.done_order && order == t.done_order + 1)
      return place(h.track, p, record.data() + sizeof h, record.size() - sizeof h);
    auto at = t.pending.end();
    while (at != t.pending.begin() && (at - 1)->packet.order > order) --at;
    t.pending.insert(at, Pending{p, {record.begin() + sizeof h, record.end()}});
  }
}

void Recording::rebase(Track& t, const Packet& p) {
  t.base_ts = p.ts;
  t.base = std::max(position(p.at_us), t.next);
  t.based = true;
  t.least_late = INT64_MAX;
  t.window_us = p.at_us;
}

/** Keeps the sender's clock on the wall's: what arrives earliest in each two seconds is taken to have come without
 * delay. */
void Recording::steer(Track& t, const Packet& p, int64_t pos) {
  t.least_late = std::min(t.least_late, position(p.at_us) - pos);
  if (p.at_us - t.window_us < 2'000'000) return;
  const int64_t limit = config_.rate_hz / 200;
  if (t.least_late > limit || t.least_late < -limit) t.base += t.least_late;
  t.least_late = INT64_MAX;
  t.window_us = p.at_us;
}

void Recording::put(Track& t, int64_t pos, const int16_t* pcm, int samples) {
  int64_t from = std::max({pos, t.next, flushed_});
  const int64_t to = std::min(pos + samples, flushed_ + capacity_);
  t.next = std::max(t.next, to);
  const auto channels = config_.channels;
  while (from < to) {
    // As far as the end of the ring, in one run.
    const int64_t at = from % capacity_, n = std::min(to - from, capacity_ - at);
    int16_t* cell = &line_[static_cast<size_t>(at * channels + t.channel)];
    const int16_t* source = pcm + (from - pos);
    for (int64_t i = 0; i < n; ++i, cell += channels)
      *cell = static_cast<int16_t>(std::clamp(*cell + source[i], -32768, 32767));
    from += n;
  }
}

/** Notes until when somebody spoke, for recordings that silence ends. */
void Recording::measure(Track& t, int64_t pos, const int16_t* pcm, int samples) const {
  if (!config_.silence_ms || samples <= 0) return;
  int64_t energy = 0;
  for (int i = 0; i < samples; ++i) energy += int32_t{pcm[i]} * pcm[i];
  if (std::sqrt(static_cast<double>(energy) / samples) > kSilence) t.last_voice = pos + samples;
}

void Recording::place(int track, const Packet& p, const uint8_t* payload, size_t bytes) {
  Track& t = tracks_[track];
  if (track < 2) heard_ = true;
  if (t.codec != p.codec || t.clock_rate != p.clock_rate) {
    const Codec* codec = find_codec(p.codec);
    t.codec = p.codec;
    t.clock_rate = p.clock_rate;
    t.decoder = codec && codec->available() ? codec->decoder(p.codec == CodecId::opus ? config_.rate_hz : 0) : nullptr;
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
  // Farther from its arrival than any network would make it: the sender's timestamps jumped.
  // Or so long after the last one that two clocks have drifted apart unseen.
  if (std::abs(position(p.at_us) - pos) > config_.rate_hz / 2 || p.at_us > t.last_us + 2'000'000) {
    rebase(t, p);
    pos = at();
  }
  t.last_us = p.at_us;
  steer(t, p, pos);
  pos = at();
  // Timestamps are taken relative to a near one, so that their wrap is of no account.
  t.base = pos;
  t.base_ts = p.ts;

  const auto convert = [&](int samples) -> std::pair<const int16_t*, int> {
    if (!t.resampler) return {decoded_.data(), samples};
    return {converted_.data(), t.resampler->run(decoded_.data(), samples, converted_.data())};
  };
  const int64_t gap = pos - t.next;
  const bool small_gap = t.done_order && gap > 0 && gap <= config_.rate_hz * 6 / 100;
  if (small_gap && (!continued || gap < config_.rate_hz / 50)) {
    // A loss, or the clock being put right: made up rather than left silent.
    const int unit = t.decoder->sample_rate() / 100;
    const int samples = static_cast<int>((gap * t.decoder->sample_rate() / config_.rate_hz + unit - 1) / unit * unit);
    t.decoder->conceal(decoded_.data(), samples, nullptr, 0);
    const auto [pcm, n] = convert(samples);
    put(t, t.next, pcm, static_cast<int>(std::min<int64_t>(n, gap)));
  }
  const int samples = t.decoder->decode(payload, static_cast<int>(bytes), decoded_.data(), kMaxFrameSamples);
  t.done_order = p.order;
  if (samples <= 0) return;
  const auto [pcm, n] = convert(samples);
  measure(t, pos, pcm, n);
  put(t, pos, pcm, n);
}

void Recording::place_due(uint64_t now_us, bool all) {
  for (int i = 0; i < kTracks; ++i) {
    Track& t = tracks_[i];
    size_t done = 0;
    for (; done < t.pending.size(); ++done) {
      const auto& [p, payload] = t.pending[done];
      // In order and nothing missing before it: no reason to wait.
      const bool next = t.done_order && p.order == t.done_order + 1;
      if (!all && !next && now_us - p.at_us < kReorderUs) break;
      if (t.done_order && p.order <= t.done_order) continue;
      place(i, p, payload.data(), payload.size());
    }
    t.pending.erase(t.pending.begin(), t.pending.begin() + static_cast<std::ptrdiff_t>(done));
  }
}

void Recording::flush(int64_t to) {
  if (broken_ || to <= flushed_) return;
  const auto channels = static_cast<size_t>(config_.channels);
  while (flushed_ < to) {
    const int64_t n = std::min({to - flushed_, capacity_ - flushed_ % capacity_});
    int16_t* from = &line_[static_cast<size_t>(flushed_ % capacity_) * channels];
    const size_t count = static_cast<size_t>(n) * channels;
    if (const int error = file_.append(from, count)) {
      broken_ = true;
      detail_ = std::strerror(error);
      reason_ = RecordEnd::none;
      end(error == ENOSPC || error == EDQUOT || error == EFBIG ? RecordEnd::disk_full : RecordEnd::failed, flushed_);
      return;
    }
    std::memset(from, 0, count * 2);
    flushed_ += n;
  }
}

bool Recording::writer_advance(uint64_t now_us) {
  if (broken_) return true;
  while (reason_ == RecordEnd::none && ring_.pop(scratch_)) take(scratch_);
  const auto lost = static_cast<RecordEnd>(lost_end_.load());
  if (lost != RecordEnd::none) end(lost, position(now_us));
  const int64_t max = config_.max_ms ? static_cast<int64_t>(config_.max_ms) * config_.rate_hz / 1000 : INT64_MAX;
  place_due(now_us, reason_ != RecordEnd::none);
  if (reason_ == RecordEnd::none) {
    const uint64_t present = paused_since_us_ ? paused_since_us_ : now_us;
    const int64_t horizon = position(present - std::min(present - start_us_, kBehindUs));
    const int64_t due = std::min(horizon, max);
    if (horizon >= max) {
      end(RecordEnd::max_length, max);
    } else if (config_.silence_ms && !paused_since_us_) {
      const int64_t quiet = horizon - tracks_[0].last_voice;
      if (quiet >= static_cast<int64_t>(config_.silence_ms) * config_.rate_hz / 1000) end(RecordEnd::silence, horizon);
    }
    // Half a second at a time: most of what a write costs does not depend on its length, and a killed process may lose
    // a second at most.
    if (reason_ != RecordEnd::none || due - flushed_ >= config_.rate_hz / 2) flush(due);
    return reason_ != RecordEnd::none;
  }
  if (end_at_ >= max) {
    end_at_ = max;
    reason_ = RecordEnd::max_length;
  }
  flush(end_at_);
  return true;
}

void Recording::trim() {
  const auto channels = static_cast<uint64_t>(config_.channels);
  const uint64_t frame = static_cast<uint64_t>(config_.rate_hz / 50), total = file_.frames();
  std::vector<int16_t> block(frame * channels);
  const auto loud = [&](uint64_t at) {
    const size_t n = file_.read(at, block.data(), block.size());
    double energy = 0;
    for (size_t i = 0; i < n; ++i) energy += static_cast<double>(block[i]) * block[i];
    return n > 0 && std::sqrt(energy / static_cast<double>(n)) > kSilence;
  };
  uint64_t from = 0, to = total / frame * frame;
  while (from < to && !loud(from)) from += frame;
  while (to > from && !loud(to - frame)) to -= frame;
  if (from > 0 || to < total) file_.keep(from, to);
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
  e.sha256 = open ? file_.sha256() : "";
  if (const int error = file_.close(); error && reason_ != RecordEnd::disk_full) e.detail = std::strerror(error);
}

Recorder::Recorder(EventQueue& events) : events_(events), wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = std::thread([this] { run(); });
}

Recorder::~Recorder() {
  stop();
  ::close(wake_fd_);
}

void Recorder::add(std::shared_ptr<Recording> recording) {
  active_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  fresh_.push_back(std::move(recording));
}

void Recorder::wake() {
  const uint64_t one = 1;
  if (::write(wake_fd_, &one, 8) < 0) return;  // only a full counter: it is awake
}

void Recorder::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  wake();
  thread_.join();
}

void Recorder::run() {
  pthread_setname_np(pthread_self(), "recorder");
  // It has seconds of room, packets have none.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 5);
  std::vector<std::shared_ptr<Recording>> active;
  for (;;) {
    const bool last = stopping_;
    {
      std::lock_guard lock(mutex_);
      for (auto& r : fresh_) active.push_back(std::move(r));
      fresh_.clear();
    }
    const uint64_t now = mono_us();
    for (size_t i = 0; i < active.size();) {
      if (last) active[i]->packet_end(RecordEnd::leg_closed, now);
      if (active[i]->writer_advance(now) || last) {
        Event e;
        active[i]->writer_finish(e);
        dropped_ += active[i]->dropped();
        events_.push(std::move(e));
        active[i] = std::move(active.back());
        active.pop_back();
        active_.fetch_sub(1, std::memory_order_relaxed);
      } else {
        ++i;
      }
    }
    if (last) return;
    pollfd p{wake_fd_, POLLIN, 0};
    if (poll(&p, 1, active.empty() ? 1000 : static_cast<int>(kPeriodUs / 1000)) > 0) {
      uint64_t n;
      if (::read(wake_fd_, &n, 8) < 0) continue;
    }
  }
}

}  // namespace media
