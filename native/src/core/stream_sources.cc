// The sources that a stream sends by a clock of its own: prompts, feeds, keys, a conference, the noise of a pause.
#include <cmath>
#include <cstring>

#include "conference.h"
#include "stream.h"

namespace media {

void Stream::start_clock(uint64_t now_us) {
  if (clocked_ || closed_) return;
  clocked_ = true;
  source_ = Source::none;
  clock_due_us_ = clock_since_us_ = now_us;
  context_.wheel.set(clock_timer_, now_us);
}

/** Anything that takes the place of a relay. */
bool Stream::has_clocked_source() const {
  return (keys_out_ && keys_out_->busy()) || player_ || (feed_ && !feed_->empty()) || conference_ || pause_.on();
}

void Stream::play(std::unique_ptr<Player> player, uint64_t now_us) {
  end_play("stopped");
  player_ = std::move(player);
  start_clock(now_us);
}

void Stream::stop_play(const std::string& id, uint64_t) {
  if (player_ && (id.empty() || id == player_->id())) end_play("stopped");
}

void Stream::end_play(const char* reason) {
  if (!player_) return;
  Event e;
  e.type = EventType::play_ended;
  e.stream = id_;
  e.id = player_->id();
  e.text = reason;
  e.a = static_cast<int64_t>(player_->played_ms());
  player_.reset();
  context_.events.push(std::move(e));
}

void Stream::tell_marks(std::vector<std::string>& marks) {
  for (auto& m : marks) event(EventType::mark, 0, 0, m.c_str());
  marks.clear();
}

void Stream::feed(std::shared_ptr<const std::vector<int16_t>> samples, int rate_hz, uint64_t now_us) {
  if (!feed_) feed_ = std::make_unique<Feed>();
  feed_->add(std::move(samples), rate_hz);
  start_clock(now_us);
}

void Stream::feed_mark(std::string name, uint64_t) {
  if (!feed_) feed_ = std::make_unique<Feed>();
  feed_->mark(std::move(name));
  std::vector<std::string> passed;
  if (feed_->empty()) feed_->take_due_marks(passed);
  tell_marks(passed);
}

void Stream::feed_clear() {
  if (!feed_) return;
  std::vector<std::string> passed;
  feed_->clear(passed);
  tell_marks(passed);
}

void Stream::send_keys(KeySender::Request request, uint64_t now_us) {
  if (!keys_out_) keys_out_ = std::make_unique<KeySender>();
  keys_out_->add(std::move(request));
  start_clock(now_us);
}

/** True when a key, or the pause around one, takes this tick. */
bool Stream::keys_tick(uint64_t now_us) {
  if (!keys_out_ || !keys_out_->busy()) return false;
  KeySender::Packet p;
  const uint32_t clock = config_.sends_events ? config_.event.clock_rate : 8000;
  const auto step = keys_out_->tick(clock, p);
  if (step == KeySender::Step::finished) {
    if (!keys_out_->front().id.empty()) {
      Event e;
      e.type = EventType::digits_sent;
      e.stream = id_;
      e.id = keys_out_->front().id;
      e.flag = true;
      context_.events.push(std::move(e));
    }
    keys_out_->pop();
    return keys_out_->busy();
  }
  if (step == KeySender::Step::gap) {
    // Between keys what plays is heard; a bridge stays away until the last key.
    return !player_;
  }
  if (!config_.may_send || !config_.sends || !send_address_.known()) return true;
  if (config_.sends_events) {
    if (p.first) {
      key_ts_ = present_ts(now_us);
      source_ = Source::keys;
    }
    uint8_t packet[kRtpHeader + 4 + kTailRoom];
    write_telephone_event(packet + kRtpHeader, p.event);
    // The marker goes on the first packet of the key alone (RFC 4733 §2.5.1.1).
    marker_next_ = false;
    emit(packet, 4, config_.event.payload_type, p.first, next_seq_++, key_ts_, now_us);
    if (p.event.end) {
      last_ts_ = key_ts_ + p.event.duration;
      last_ts_us_ = now_us;
    }
    return true;
  }
  static const double kLow[] = {941, 697, 697, 697, 770, 770, 770, 852, 852, 852, 941, 941, 697, 770, 852, 941};
  static const double kHigh[] = {1336, 1209, 1336, 1477, 1209, 1336, 1477, 1209,
                                 1336, 1477, 1209, 1477, 1633, 1633, 1633, 1633};
  int16_t pcm[160];
  for (auto& sample : pcm) {
    sample = static_cast<int16_t>(6000 * std::sin(key_phase_[0]) + 7500 * std::sin(key_phase_[1]));
    key_phase_[0] += 2 * M_PI * kLow[p.event.event & 15] / 8000;
    key_phase_[1] += 2 * M_PI * kHigh[p.event.event & 15] / 8000;
  }
  take_pcm(pcm, 160, 8000, now_us);
  return true;
}

/** A browser's leg has nowhere to send to until ICE and DTLS are done: its first prompt begins then, not before. */
bool Stream::waits_for_path(uint64_t now_us) const {
  return takes_raw_ && !sent_any_ && !send_address_.known() && now_us - clock_since_us_ < 10'000'000;
}

void Stream::clock_tick(uint64_t now_us) {
  if (now_us > clock_due_us_ + 5'000 && context_.counters) ++context_.counters->late_ticks;
  if (now_us > clock_due_us_ + 100'000) clock_due_us_ = now_us;
  clock_due_us_ += 20'000;
  if (waits_for_path(now_us)) return context_.wheel.set(clock_timer_, clock_due_us_);
  const bool keys = keys_tick(now_us);
  if (!keys) {
    int16_t pcm[960];
    const int rate = encoder_rate(), n = rate / 50;
    if (player_) {
      const int got = player_->pull(pcm, n, rate);
      std::memset(pcm + got, 0, static_cast<size_t>(n - got) * 2);
      if (got > 0) take_pcm(pcm, n, rate, now_us);
      if (got < n) end_play("finished");
    } else if (feed_ && !feed_->empty()) {
      std::vector<std::string> marks;
      feed_->pull(pcm, n, rate, marks);
      take_pcm(pcm, n, rate, now_us);
      tell_marks(marks);
    } else if (conference_) {
      const int m = conference_->rate_hz / 50;
      while (conference_->out.held() > static_cast<size_t>(4 * m)) conference_->out.read(pcm, static_cast<size_t>(m));
      if (conference_->out.read(pcm, static_cast<size_t>(m))) take_pcm(pcm, m, conference_->rate_hz, now_us);
    } else if (pause_.on()) {
      pause_.fill(pcm, n);
      take_pcm(pcm, n, rate, now_us);
    }
  }
  if (has_clocked_source()) {
    context_.wheel.set(clock_timer_, clock_due_us_);
    return;
  }
  clocked_ = false;
  source_ = Source::none;
}

}  // namespace media
