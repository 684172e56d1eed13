#include "sources.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "conference.h"
#include "stream.h"
#include "tick.h"

namespace media {

namespace {
/** A tick later than this is counted. */
constexpr uint64_t kLateUs = 5'000;
/** The longest time that the first prompt of a browser's leg waits for ICE and DTLS. */
constexpr uint64_t kPathUs = 10'000'000;
/** Silence begins this long after a stream became idle, so that a bridge that follows an answer is a relay from its
 * first packet. After a source of our own it follows at once. */
constexpr uint64_t kIdleAfterUs = 100'000;
/** Idle streams send at multiples of this time, so that their packets leave together and the caches stay warm. */
constexpr uint64_t kIdleGridUs = 5'000;
/** The rate of tones, and the clock rate of keys that are sent as tones. */
constexpr int kToneHz = 8000;
}  // namespace

Sources::Sources(Stream& stream) : stream_(stream) {
  timer_.bind([](void* s, uint64_t now) { static_cast<Sources*>(s)->tick(now); }, this);
}

void Sources::play(std::unique_ptr<Player> player, uint64_t now_us) {
  end_play("stopped");
  player_ = std::move(player);
  start_clock(now_us);
}

void Sources::stop_play(const std::string& id) {
  if (player_ && (id.empty() || id == player_->id())) end_play("stopped");
}

void Sources::end_play(const char* reason) {
  if (!player_) return;
  Event e = stream_.event_of(EventType::play_ended);
  e.id = player_->id();
  e.text = reason;
  e.a = static_cast<int64_t>(player_->played_ms());
  player_.reset();
  stream_.tell(std::move(e));
}

void Sources::feed(std::shared_ptr<const std::vector<int16_t>> samples, int rate_hz, bool yields, uint64_t now_us) {
  if (!feed_) feed_ = std::make_unique<Feed>();
  feed_->add(std::move(samples), rate_hz, yields);
  start_clock(now_us);
}

void Sources::announce(std::shared_ptr<const std::vector<int16_t>> samples, int rate_hz, uint64_t now_us) {
  if (!announcement_) announcement_ = std::make_unique<Feed>();
  announcement_->add(std::move(samples), rate_hz, false);
  start_clock(now_us);
}

void Sources::feed_mark(std::string name) {
  if (!feed_) feed_ = std::make_unique<Feed>();
  feed_->mark(std::move(name));
  std::vector<std::string> passed;
  if (feed_->empty()) feed_->take_due_marks(passed);
  tell_marks(passed);
}

void Sources::feed_clear() {
  if (!feed_) return;
  std::vector<std::string> passed;
  feed_->clear(passed);
  tell_marks(passed);
}

void Sources::yield_to_voice() {
  if (!feed_ || feed_->empty() || !feed_->yields()) return;
  stream_.tell(EventType::feed_cut, static_cast<int64_t>(feed_->since_mark_ms()), 0, feed_->last_mark().c_str());
  feed_clear();
}

void Sources::tell_marks(const std::vector<std::string>& marks) {
  for (const auto& m : marks) stream_.tell(EventType::mark, 0, 0, m.c_str());
}

void Sources::join(std::shared_ptr<ConferencePort> port) {
  conference_ = std::move(port);
}

bool Sources::muted() const {
  return conference_ && conference_->muted.load(std::memory_order_relaxed);
}

bool Sources::leave() {
  if (!conference_) return false;
  conference_->left.store(true, std::memory_order_release);
  conference_.reset();
  return true;
}

void Sources::sound_pause(const uint8_t* payload, size_t n, uint64_t now_us) {
  if (!pause_.on() && !stream_.sender().may_take_relay()) return;
  pause_.set(payload, n);
  start_clock(now_us);
}

void Sources::end_pause() {
  pause_.off();
  if (any()) return;
  timer_.cancel();
  if (stream_.sender().clocked()) stream_.sender().set_clocked(false);
}

void Sources::close() {
  end_play("closed");
  feed_clear();
  announcement_.reset();
  if (sends_keys()) tell_keys(false);
}

// Keys

void Sources::send_keys(KeySender::Request request, uint64_t now_us) {
  if (!keys_) keys_ = std::make_unique<KeySender>();
  keys_->add(std::move(request));
  start_clock(now_us);
}

/** Reports how a request of JavaScript ended. A relayed key has no id and no report. */
void Sources::tell_keys(bool sent) {
  if (keys_->front().id.empty()) return;
  Event e = stream_.event_of(EventType::digits_sent);
  e.id = keys_->front().id;
  e.flag = sent;
  stream_.tell(std::move(e));
}

/** Sends the current key, if any. True when a key or the pause after it uses this tick. */
bool Sources::keys_tick(uint64_t now_us) {
  if (!sends_keys()) return false;
  const StreamConfig& config = stream_.config();
  KeySender::Packet p;
  switch (keys_->tick(config.sends_events ? config.event.clock_rate : kToneHz, p)) {
    case KeySender::Step::finished:
      tell_keys(true);
      keys_->pop();
      return keys_->busy();
    case KeySender::Step::gap:
      // A prompt continues between keys. A bridge waits until after the last key.
      return !player_;
    default:
      break;
  }
  if (!stream_.sender().reaches_peer()) return true;
  if (config.sends_events)
    stream_.sender().send_key(p, now_us);
  else
    send_tones(p.event.event, now_us);
  return true;
}

void Sources::send_tones(int event, uint64_t now_us) {
  static const double kLow[] = {941, 697, 697, 697, 770, 770, 770, 852, 852, 852, 941, 941, 697, 770, 852, 941};
  static const double kHigh[] = {1336, 1209, 1336, 1477, 1209, 1336, 1477, 1209,
                                 1336, 1477, 1209, 1477, 1633, 1633, 1633, 1633};
  int16_t pcm[kToneHz / 50];
  for (auto& sample : pcm) {
    sample = static_cast<int16_t>(6000 * std::sin(tone_phase_[0]) + 7500 * std::sin(tone_phase_[1]));
    tone_phase_[0] += 2 * M_PI * kLow[event & 15] / kToneHz;
    tone_phase_[1] += 2 * M_PI * kHigh[event & 15] / kToneHz;
  }
  stream_.packetiser().take(pcm, kToneHz / 50, kToneHz, now_us);
}

// The clock

void Sources::start_clock(uint64_t now_us) {
  if (stream_.sender().clocked() || stream_.closed()) return;
  stream_.sender().set_clocked(true);
  due_us_ = since_us_ = now_us;
  stream_.context().wheel.set(timer_, now_us);
}

/** Reports whether any source replaces the relay. */
bool Sources::any() const {
  return sends_keys() || (announcement_ && !announcement_->empty()) || player_ || (feed_ && !feed_->empty()) || conference_ || pause_.on();
}

/** Reports whether the peer would get nothing. A stream that feeds this one counts only when we may receive from it. A
 * peer that holds its call may play music, or send nothing. */
bool Sources::idle(uint64_t now_us) const {
  if (!stream_.config().fills_idle || stream_.closed() || any() || !stream_.sender().reaches_peer()) return false;
  for (auto* s : stream_.feeders())
    if (s->config().may_receive && (s->config().may_send || !s->receiver().is_silent(now_us))) return false;
  return true;
}

void Sources::look_idle(uint64_t now_us) {
  if (any()) return;
  if (!idle(now_us)) return end_pause();
  if (!timer_.armed()) stream_.context().wheel.set(timer_, now_us + kIdleAfterUs);
}

/** Reports whether the first prompt must wait. A browser's leg has no address to send to before ICE and DTLS. */
bool Sources::waits_for_path(uint64_t now_us) const {
  const Sender& sender = stream_.sender();
  return stream_.receiver().takes_raw() && !sender.sent_any() && !sender.address().known() &&
         now_us - since_us_ < kPathUs;
}

void Sources::tick(uint64_t now_us) {
  ThreadContext& context = stream_.context();
  if (!stream_.sender().clocked()) {
    if (!idle(now_us)) return;
    stream_.sender().set_clocked(true);
    due_us_ = since_us_ = now_us;
  }
  if (now_us > due_us_ + kLateUs && context.counters) ++context.counters->late_ticks;
  if (now_us > due_us_ + kLostUs) due_us_ = now_us;
  due_us_ += kTickUs;
  if (waits_for_path(now_us)) return context.wheel.set(timer_, due_us_);
  if (!keys_tick(now_us)) send_audio(now_us);
  const bool rests = idle(now_us);
  if (rests) due_us_ = (due_us_ + kIdleGridUs - 1) / kIdleGridUs * kIdleGridUs;
  if (rests || any()) return context.wheel.set(timer_, due_us_);
  stream_.sender().set_clocked(false);
}

/** Sends 20 ms of the source with the highest precedence. */
void Sources::send_audio(uint64_t now_us) {
  if (send_announcement(now_us)) return;
  Packetiser& packetiser = stream_.packetiser();
  int16_t pcm[kMostTick];
  const int rate = packetiser.rate(), n = rate / 50;
  if (player_) {
    const int got = player_->pull(pcm, n, rate);
    std::memset(pcm + got, 0, static_cast<size_t>(n - got) * sizeof *pcm);
    if (got > 0) packetiser.take(pcm, n, rate, now_us);
    if (got < n) end_play("finished");
    // A play that ended with its last tick leaves this one to the next source.
    if (got > 0) return;
  }
  if (feed_ && !feed_->empty()) {
    std::vector<std::string> marks;
    feed_->pull(pcm, n, rate, marks);
    packetiser.take(pcm, n, rate, now_us);
    tell_marks(marks);
  } else if (conference_) {
    send_conference(now_us);
  } else if (pause_.on()) {
    pause_.fill(pcm, n);
    packetiser.take(pcm, n, rate, now_us);
  } else if (idle(now_us)) {
    packetiser.fill_idle(now_us);
  }
}

bool Sources::send_announcement(uint64_t now_us) {
  if (!announcement_ || announcement_->empty()) return false;
  Packetiser& packetiser = stream_.packetiser();
  int16_t pcm[kMostTick];
  const int rate = packetiser.rate(), n = rate / 50;
  std::vector<std::string> marks;
  announcement_->pull(pcm, n, rate, marks);
  packetiser.take(pcm, n, rate, now_us);
  return true;
}

void Sources::send_conference(uint64_t now_us) {
  Packetiser& packetiser = stream_.packetiser();
  conference_->format.store(packetiser.format(), std::memory_order_relaxed);
  if (conference_->deaf.load(std::memory_order_relaxed)) return packetiser.fill_idle(now_us);
  // Another thread's clock drives the mix. Drop the excess that its drift has piled up.
  while (conference_->out.held() > 4) conference_->out.read();
  if (const auto mix = conference_->out.read()) packetiser.take_mix(*mix, conference_->rate_hz, now_us);
}

}  // namespace media
