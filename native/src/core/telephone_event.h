// Keys as telephone events (RFC 4733). The timestamp at which a key begins identifies it, together with its event: some
// senders let the clock stand still while keys are pressed, so that different keys have one timestamp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace media {

/*  |     event     |E|R| volume    |          duration             | */
struct TelephoneEvent {
  uint8_t event = 0;
  bool end = false;
  uint8_t volume = 0;
  uint16_t duration = 0;
};
bool parse_telephone_event(const uint8_t* p, size_t n, TelephoneEvent& out);
void write_telephone_event(uint8_t* p, const TelephoneEvent& e);

/** Returns the key of an event (0-9, *, #, A-D), or 0 for any other event. */
char key_of_event(uint8_t event);
/** Returns the event of a key, or -1 for any other character. */
int event_of_key(char key);

class KeyReceiver {
 public:
  struct Key {
    char digit;
    uint32_t duration_ms;
    /** The RTP timestamp at which it went down, in units of a clock of this rate. */
    uint32_t ts, clock_rate;
  };
  /**
   * Returns the timestamp at which the key of a packet went down. Some gateways write the time of each packet instead
   * (RFC 4733 §2.3.5 forbids it); the duration then says that it is still the same key.
   */
  uint32_t begun_at(const TelephoneEvent& e, uint32_t ts, uint32_t clock_rate) const;
  /** Takes a packet. True when it completes a key, which `out` then holds. Reports each key once. */
  bool take(const TelephoneEvent& e, uint32_t ts, uint32_t clock_rate, uint64_t now_us, Key& out);
  /** Completes a key whose end was lost, after 150 ms without a packet. True when `out` holds that key. */
  bool expire(uint64_t now_us, Key& out);
  bool pressed() const { return active_; }

 private:
  bool finish(Key& out);
  bool active_ = false;
  bool any_ = false;
  uint8_t event_ = 0;
  uint8_t done_event_[4] = {};
  uint32_t ts_ = 0, done_ts_[4] = {}, clock_rate_ = 8000, longest_ = 0, carried_ = 0;
  unsigned done_ = 0;
  uint64_t last_us_ = 0;
};

/** Sends keys one after the other, with a tick every 20 ms. */
class KeySender {
 public:
  struct Request {
    std::string id, digits;
    uint32_t on_ms, gap_ms;
  };
  struct Packet {
    TelephoneEvent event;
    uint32_t ts_back_ms;  // time since the start of the event
    bool first;
  };
  enum class Step : uint8_t { idle, packet, gap, finished };

  void add(Request r) { queue_.push_back(std::move(r)); }
  bool busy() const { return !queue_.empty(); }
  const Request& front() const { return queue_.front(); }
  /** Advances by a tick. `finished` means that the front request is complete; remove it with `pop`. */
  Step tick(uint32_t clock_rate, Packet& out);
  void pop();

 private:
  std::deque<Request> queue_;
  size_t at_ = 0;
  uint32_t elapsed_ms_ = 0, wait_ms_ = 0;
  int ends_ = 0;
  bool on_ = false;
};

}  // namespace media
