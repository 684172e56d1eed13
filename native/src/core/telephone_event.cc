#include "telephone_event.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "bytes.h"

namespace media {

static const char kKeys[] = "0123456789*#ABCD";

bool parse_telephone_event(const uint8_t* p, size_t n, TelephoneEvent& out) {
  if (n < 4) return false;
  out.event = p[0];
  out.end = p[1] & 0x80;
  out.volume = p[1] & 0x3f;
  out.duration = get16(p + 2);
  return true;
}

void write_telephone_event(uint8_t* p, const TelephoneEvent& e) {
  p[0] = e.event;
  p[1] = static_cast<uint8_t>((e.end ? 0x80 : 0) | (e.volume & 0x3f));
  put16(p + 2, e.duration);
}

char key_of_event(uint8_t event) {
  return event < 16 ? kKeys[event] : 0;
}

int event_of_key(char key) {
  const char* at = std::strchr(kKeys, std::toupper(static_cast<unsigned char>(key)));
  return at && *at ? static_cast<int>(at - kKeys) : -1;
}

bool KeyReceiver::finish(Key& out) {
  active_ = false;
  done_event_[done_ % 4] = event_;
  done_ts_[done_++ % 4] = ts_;
  any_ = true;
  out.digit = key_of_event(event_);
  out.duration_ms = static_cast<uint32_t>(uint64_t{carried_ + longest_} * 1000 / clock_rate_);
  out.ts = ts_ - carried_;
  out.clock_rate = clock_rate_;
  return out.digit != 0;
}

uint32_t KeyReceiver::begun_at(const TelephoneEvent& e, uint32_t ts, uint32_t clock_rate) const {
  const uint32_t since = ts - ts_;
  if (!(active_ || (any_ && e.end)) || e.event != event_ || since >= 0xff00) return ts;
  // Only ends come without a further duration: three, a packet apart.
  const uint32_t repeats = e.end ? clock_rate / 25 : 0;
  return since <= e.duration + repeats && e.duration <= since + clock_rate / 10 ? ts_ : ts;
}

bool KeyReceiver::take(const TelephoneEvent& e, uint32_t ts, uint32_t clock_rate, uint64_t now_us, Key& out) {
  ts = begun_at(e, ts, clock_rate);
  if (any_)
    for (unsigned i = 0; i < std::min(done_, 4u); ++i)
      if (done_ts_[i] == ts && done_event_[i] == e.event) return false;  // a repeated end: RFC 4733 §2.5.1.4 sends it three times
  bool ended = false;
  if (active_ && (ts != ts_ || e.event != event_)) {
    if (static_cast<int32_t>(ts - ts_) < 0) return false;  // a late packet of an older key
    if (e.event == event_ && ts - ts_ >= 0xff00 && ts - ts_ <= 0xffff + 2 * clock_rate / 50) {
      // RFC 4733 §2.5.1.3: a key that outlasts the duration field continues under a new timestamp.
      carried_ += ts - ts_;
      ts_ = ts;
      longest_ = 0;
    } else {
      ended = finish(out);
    }
  }
  if (!active_) {
    active_ = true;
    event_ = e.event;
    ts_ = ts;
    carried_ = 0;
    longest_ = 0;
    clock_rate_ = clock_rate ? clock_rate : 8000;
  }
  longest_ = std::max<uint32_t>(longest_, e.duration);
  last_us_ = now_us;
  // If the end of the previous key was lost, report that key now. The next packet or expire() reports this one.
  if (ended) return true;
  return e.end ? finish(out) : false;
}

bool KeyReceiver::expire(uint64_t now_us, Key& out) {
  if (!active_ || now_us - last_us_ < 150'000) return false;
  return finish(out);
}

KeySender::Step KeySender::tick(uint32_t clock_rate, Packet& out) {
  if (queue_.empty()) return Step::idle;
  const Request& r = queue_.front();
  if (wait_ms_ > 0) {
    wait_ms_ -= std::min(wait_ms_, 20u);
    return Step::gap;
  }
  if (!on_) {
    if (at_ >= r.digits.size()) return Step::finished;
    const char c = r.digits[at_];
    if (c == 'w' || c == 'W') {
      ++at_;
      wait_ms_ = c == 'w' ? 480 : 980;
      return Step::gap;
    }
    on_ = true;
    elapsed_ms_ = 0;
    ends_ = 0;
  }
  const bool first = elapsed_ms_ == 0;
  if (elapsed_ms_ < r.on_ms) elapsed_ms_ += 20;
  const bool end = elapsed_ms_ >= r.on_ms;
  out.event = {static_cast<uint8_t>(event_of_key(r.digits[at_])), end, 10,
               static_cast<uint16_t>(std::min<uint64_t>(0xffff, uint64_t{elapsed_ms_} * clock_rate / 1000))};
  out.first = first;
  out.ts_back_ms = elapsed_ms_;
  if (end && ++ends_ == 3) {
    on_ = false;
    ++at_;
    wait_ms_ = r.gap_ms;
  }
  return Step::packet;
}

void KeySender::pop() {
  if (!queue_.empty()) queue_.pop_front();
  at_ = 0;
  wait_ms_ = 0;
  on_ = false;
}

}  // namespace media
