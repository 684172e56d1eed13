#include "conference.h"

#include <algorithm>
#include <cstring>

#include "clock.h"
#include "recorder.h"

namespace media {

namespace {
/** A participant talks while the root mean square is above this level (about -50 dBm0) and for half a second after, so
 * that the ends of words are heard. */
constexpr int64_t kTalk = 50;
constexpr int kHangoverTicks = 25;
/** In a room of this size everybody counts as talking: the room tone of a few lines is part of their talk. */
constexpr size_t kSmall = 8;
/** The tracks of a recording: the mix, and the named participant. */
constexpr int kMixTrack = 0, kNamedTrack = 1;
}  // namespace

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

void MixRing::write(std::shared_ptr<const Mix> mix) {
  const size_t at = write_.load(std::memory_order_relaxed);
  if (at - read_.load(std::memory_order_acquire) >= kSize) return;
  mixes_[at % kSize] = std::move(mix);
  write_.store(at + 1, std::memory_order_release);
}

std::shared_ptr<const Mix> MixRing::read() {
  const size_t at = read_.load(std::memory_order_relaxed);
  if (write_.load(std::memory_order_acquire) == at) return nullptr;
  auto mix = std::move(mixes_[at % kSize]);
  read_.store(at + 1, std::memory_order_release);
  return mix;
}

Conference::~Conference() {
  for (const auto& r : recordings_) r.recording->packet_end(RecordEnd::leg_closed, mono_us());
  if (!recordings_.empty()) recorder_.wake();
}

bool Conference::add(std::shared_ptr<ConferencePort> port) {
  if (seats_.size() >= kMost) return false;
  seats_.push_back(std::make_unique<Seat>());
  seats_.back()->port = std::move(port);
  return true;
}

/** Takes the next 20 ms of a participant, and decides whether they are part of the mix. */
void Conference::listen(Seat& seat) {
  ConferencePort& p = *seat.port;
  const auto n = static_cast<size_t>(rate_hz_ / 50);
  int16_t* const heard = seat.heard.data();
  // Two frames absorb the difference between two threads' clocks. More than four would only add delay.
  if (!p.started && p.in.held() >= 2 * n) p.started = true;
  while (p.in.held() > 4 * n) p.in.read(heard, n);
  seat.any = p.started && p.in.read(heard, n);
  if (p.started && !seat.any) p.started = false;
  if (p.muted.load(std::memory_order_relaxed)) seat.any = false;
  seat.only = p.heard_by.load(std::memory_order_relaxed);
  seat.talks = seat.any;
  if (!seat.any || seats_.size() <= kSmall) return;
  int64_t energy = 0;
  for (size_t i = 0; i < n; ++i) energy += int32_t{heard[i]} * heard[i];
  p.quiet_ticks = energy > kTalk * kTalk * static_cast<int64_t>(n) ? 0 : std::min(p.quiet_ticks, kHangoverTicks) + 1;
  seat.talks = p.quiet_ticks <= kHangoverTicks;
}

void Conference::tick(uint64_t now_us) {
  std::erase_if(seats_, [](const auto& s) { return s->port->left.load(std::memory_order_acquire); });
  const auto n = static_cast<size_t>(rate_hz_ / 50);
  std::fill_n(sum_.begin(), n, 0);
  bool coached = false;
  for (auto& s : seats_) {
    listen(*s);
    if (!s->talks) continue;
    coached |= s->only != 0;
    if (s->only) continue;
    for (size_t i = 0; i < n; ++i) sum_[i] += s->heard[i];
  }
  for (size_t i = 0; i < n; ++i) all_[i] = static_cast<int16_t>(std::clamp(sum_[i], -32768, 32767));
  for (auto& s : seats_) {
    ConferencePort& p = *s->port;
    if (p.deaf.load(std::memory_order_relaxed)) continue;
    const bool alone = (s->talks && !s->only) ||
                       (coached && std::any_of(seats_.begin(), seats_.end(), [&](const auto& other) {
                          return other->talks && other->only == p.stream;
                        }));
    p.out.write(alone ? own_mix(*s) : shared_mix(p.format.load(std::memory_order_relaxed)));
  }
  std::erase_if(shared_, [](const Shared& s) { return !s.used; });
  for (auto& s : shared_) {
    s.used = false;
    s.mix.reset();
  }
  write_recordings(now_us);
}

/** Returns the mix for a participant who talks or is coached: the sum without the own voice, and with the coaches'. */
std::shared_ptr<const Mix> Conference::own_mix(const Seat& seat) const {
  const auto n = static_cast<size_t>(rate_hz_ / 50);
  auto mix = std::make_shared<Mix>();
  std::array<int32_t, kMostTick> own;
  for (size_t i = 0; i < n; ++i) own[i] = sum_[i] - (seat.talks && !seat.only ? seat.heard[i] : 0);
  for (const auto& other : seats_)
    if (other->talks && other->only && other->only == seat.port->stream)
      for (size_t i = 0; i < n; ++i) own[i] += other->heard[i];
  for (size_t i = 0; i < n; ++i) mix->pcm[i] = static_cast<int16_t>(std::clamp(own[i], -32768, 32767));
  return mix;
}

/** Returns the mix of everybody for a hearer of this format. The first such hearer of a tick has it encoded. */
std::shared_ptr<const Mix> Conference::shared_mix(PacketFormat format) {
  auto at = std::find_if(shared_.begin(), shared_.end(), [&](const Shared& s) { return s.format == format; });
  if (at == shared_.end()) {
    Shared fresh;
    fresh.format = format;
    const Codec* codec = find_codec(format.codec);
    if (format.shared() && codec) fresh.encoder = codec->encoder(format.options());
    if (fresh.encoder && fresh.encoder->sample_rate() != rate_hz_)
      fresh.resampler = std::make_unique<Resampler>(rate_hz_, fresh.encoder->sample_rate());
    at = shared_.insert(at, std::move(fresh));
  }
  at->used = true;
  if (!at->mix) at->mix = encoded(*at);
  return at->mix;
}

std::shared_ptr<const Mix> Conference::encoded(Shared& shared) const {
  const int n = rate_hz_ / 50;
  auto mix = std::make_shared<Mix>();
  std::copy_n(all_.begin(), n, mix->pcm.begin());
  if (!shared.encoder) return mix;
  int16_t converted[kMostTick];
  const int16_t* pcm = all_.data();
  int samples = n;
  if (shared.resampler) {
    samples = shared.resampler->run(pcm, n, converted);
    pcm = converted;
  }
  uint8_t packet[kMostEncoded];
  const int bytes = shared.encoder->encode(pcm, samples, packet, kMostEncoded);
  mix->format = shared.format;
  if (bytes > 0) mix->packet.assign(packet, packet + bytes);
  return mix;
}

void Conference::record(std::shared_ptr<Recording> recording, uint32_t named) {
  recordings_.push_back({std::move(recording), named});
}

void Conference::unrecord(const Recording* recording) {
  std::erase_if(recordings_, [&](const Taken& r) { return r.recording.get() == recording; });
}

/** Gives the recordings the mix of this tick. Coaches are not part of it. */
void Conference::write_recordings(uint64_t now_us) {
  const auto n = static_cast<uint32_t>(rate_hz_ / 50);
  const auto give = [&](Taken& to, int track, const int16_t* pcm) {
    to.recording->packet_audio(track, 1, to.seq, to.ts, static_cast<uint32_t>(rate_hz_), CodecId::samples,
                               reinterpret_cast<const uint8_t*>(pcm), n * sizeof *pcm, now_us);
  };
  for (auto& r : recordings_) {
    give(r, kMixTrack, all_.data());
    if (r.named) {
      const auto at =
          std::find_if(seats_.begin(), seats_.end(), [&](const auto& s) { return s->port->stream == r.named; });
      give(r, kNamedTrack, at != seats_.end() && (*at)->any ? (*at)->heard.data() : kSilence);
    }
    ++r.seq;
    r.ts += n;
  }
}

}  // namespace media
