#include "received_keys.h"

#include <algorithm>
#include <string>

#include "stream.h"

namespace media {

namespace {
/** An event repeats in-band tones when its key went down at most this long after them (docs/calls.md). */
constexpr uint64_t kEchoUs = 400'000;
/** An event may have begun this long before its tones were told from the audio, which passes a jitter buffer. */
constexpr int64_t kToldLateUs = 1'000'000;
/** More presses than this do not fit into kEchoUs. A stream whose clock stands still does not make us keep more. */
constexpr size_t kMostTones = 16;
/** INFO_ECHO_MS of core/domain/calls/key-echo.ts. */
constexpr uint64_t kInfoEchoUs = 2'000'000;
/** A person presses fewer keys in kInfoEchoUs. A peer that sends more does not make us keep them. */
constexpr size_t kMostPresses = 64;
/** The reported duration of a key that was detected from its tones. */
constexpr uint32_t kHeardMs = 50;
constexpr uint32_t kGapMs = 60;
}  // namespace

void ReceivedKeys::on_event(uint8_t* packet, const RtpView& came, const PayloadFacts& facts, uint64_t now_us) {
  TelephoneEvent e;
  if (!parse_telephone_event(packet + came.header, came.payload, e)) {
    ++stream_.counters().malformed;
    return;
  }
  RtpView v = came;
  v.ts = received_.begun_at(e, came.ts, facts.clock_rate);
  if (Stream* peer = stream_.peer()) peer->sources().interrupt_pause();
  const bool begins = !any_ || v.ts != ts_;
  // The first packet of the next key also completes a key whose end was lost.
  if (begins && e.end) begin(v.ts);
  KeyReceiver::Key key;
  if (received_.take(e, v.ts, facts.clock_rate, now_us, key)) on_key(key, false, now_us);
  if (begins && !e.end) begin(v.ts);
  relay(packet, v, e, facts, now_us);
}

void ReceivedKeys::relay(uint8_t* packet, const RtpView& v, const TelephoneEvent& e, const PayloadFacts& facts,
                         uint64_t now_us) {
  Stream* peer = stream_.peer();
  if (!peer) return;
  Sender& sender = peer->sender();
  const StreamConfig& out = peer->config();
  if (!passes_on_ || waits_ || !sender.may_take_relay() || !out.sends_events) return sender.skip_relay(v);
  const bool same_clock = facts.clock_rate == out.event.clock_rate && out.event.clock_rate == out.send.clock_rate;
  if (same_clock && !stream_.receiver().transcodes())
    sender.relay(packet, v, facts, now_us);
  else
    sender.relay_event(v, e, facts, now_us);
}

/** Notes the start of a key. The key waits if we are sending keys of our own to the peer. */
void ReceivedKeys::begin(uint32_t ts) {
  any_ = true;
  ts_ = ts;
  waits_ = stream_.peer() && stream_.peer()->sources().sends_keys();
}

void ReceivedKeys::expire(uint64_t now_us) {
  KeyReceiver::Key key;
  if (received_.expire(now_us, key)) on_key(key, false, now_us);
}

void ReceivedKeys::heard(char digit, uint64_t now_us) {
  // During an event the tones in the audio repeat the same key.
  if (received_.pressed()) return;
  const DecodePath* path = stream_.receiver().decode_path();
  on_key({digit, kHeardMs, path ? path->position() : 0, path ? path->clock_rate() : 0}, true, now_us);
}

/** Reports whether a key that ended now may be the echo of tones: it went down soon after them, by the clock of the
 * sender when tones and event have one, else by their arrival. The network may hold up one of them for longer. */
bool ReceivedKeys::may_echo(const Tones& tones, const KeyReceiver::Key& key, uint64_t held_us, uint64_t now_us) {
  if (now_us <= tones.at_us + kEchoUs + held_us) return true;
  if (key.clock_rate == 0 || key.clock_rate != tones.clock_rate) return false;
  const int64_t after_us = int64_t{static_cast<int32_t>(key.ts - tones.ts)} * 1'000'000 / key.clock_rate;
  return after_us >= -kToldLateUs && after_us <= static_cast<int64_t>(kEchoUs);
}

/** Reports whether an event repeats tones that were reported before: some senders send both. Tones match only once. */
bool ReceivedKeys::is_echo(const KeyReceiver::Key& key) {
  const auto found = std::ranges::find(tones_, key.digit, &Tones::digit);
  if (found == tones_.end()) return false;
  tones_.erase(found);
  return true;
}

/** Reports whether a press counts that came in the media or by INFO. Its echo by the other way does not (`hearPress` of
 * core/domain/calls/key-echo.ts). */
bool ReceivedKeys::counts(char digit, bool by_info, uint64_t held_us, uint64_t now_us) {
  std::erase_if(presses_, [&](const Press& p) { return now_us > p.at_us + kInfoEchoUs + held_us; });
  const auto echoed = std::ranges::find_if(
      presses_, [&](const Press& p) { return p.digit == digit && p.by_info != by_info; });
  if (echoed != presses_.end()) {
    presses_.erase(echoed);
    return false;
  }
  if (presses_.size() == kMostPresses) presses_.erase(presses_.begin());
  presses_.push_back({digit, by_info, now_us});
  return true;
}

void ReceivedKeys::informed(char digit, uint64_t now_us) {
  if (!counts(digit, true, 0, now_us)) return;
  Event e = stream_.event_of(EventType::key);
  e.id = "info";
  e.text = std::string(1, digit);
  e.b = static_cast<int64_t>(now_us / 1000);
  stream_.tell(std::move(e));
  stream_.receiver().record_key(digit, now_us);
}

void ReceivedKeys::on_key(const KeyReceiver::Key& key, bool inband, uint64_t now_us) {
  if (!inband) ++stream_.counters().keys_received;
  const uint64_t held_us = inband ? 0 : key.duration_ms * uint64_t{1000};
  std::erase_if(tones_, [&](const Tones& t) { return !may_echo(t, key, held_us, now_us); });
  if (inband) {
    if (tones_.size() == kMostTones) tones_.erase(tones_.begin());
    tones_.push_back({key.digit, now_us, key.ts, key.clock_rate});
  } else if (is_echo(key)) {
    return;
  }
  const bool counted = counts(key.digit, false, held_us, now_us);
  Event e = stream_.event_of(EventType::key);
  e.id = inband ? "inband" : "rfc4733";
  e.text = std::string(1, key.digit);
  e.a = key.duration_ms;
  e.b = static_cast<int64_t>(now_us / 1000);
  e.flag = !counted;
  stream_.tell(std::move(e));
  if (counted) stream_.receiver().record_key(key.digit, now_us);
  // A peer that takes no events gets the key as tones.
  Stream* peer = stream_.peer();
  if (inband || !peer || peer == &stream_ || !passes_on_ || !peer->config().sends) return;
  if (peer->config().sends_events && !waits_) return;
  peer->send_keys({"", std::string(1, key.digit), std::clamp(key.duration_ms, 60u, 1000u), kGapMs}, now_us);
}

}  // namespace media
