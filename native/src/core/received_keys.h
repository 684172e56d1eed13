// The keys that a stream receives. Reports each key once, and passes it to the stream that this one sends to.
//
// Thread: the packet thread of its stream. Memory: cold, used only by packets of keys.
#pragma once
#include <cstdint>
#include <vector>

#include "config.h"
#include "rtp.h"
#include "telephone_event.h"

namespace media {

class Stream;

class ReceivedKeys {
 public:
  explicit ReceivedKeys(Stream& stream) : stream_(stream) {}

  /** Sets whether keys pass to the stream that this one sends to. */
  void pass_on(bool enabled) { passes_on_ = enabled; }
  void on_event(uint8_t* packet, const RtpView& came, const PayloadFacts& facts, uint64_t now_us);
  /** Takes a key that was detected from its tones. */
  void heard(char digit, uint64_t now_us);
  /** Takes a key that came by SIP INFO. */
  void informed(char digit, uint64_t now_us);
  /** Completes a key whose end was lost. */
  void expire(uint64_t now_us);

 private:
  void begin(uint32_t ts);
  void relay(uint8_t* packet, const RtpView& v, const TelephoneEvent& e, const PayloadFacts& facts, uint64_t now_us);
  void on_key(const KeyReceiver::Key& key, bool inband, uint64_t now_us);
  bool is_echo(const KeyReceiver::Key& key);
  bool counts(char digit, bool by_info, uint64_t held_us, uint64_t now_us);

  Stream& stream_;
  KeyReceiver received_;
  bool passes_on_ = true;
  bool any_ = false, waits_ = false;
  uint32_t ts_ = 0;
  struct Tones {
    char digit;
    uint64_t at_us;
    uint32_t ts, clock_rate;  // as in KeyReceiver::Key
  };
  static bool may_echo(const Tones& tones, const KeyReceiver::Key& key, uint64_t held_us, uint64_t now_us);
  /** Keys that were detected from tones and whose events may still come. */
  std::vector<Tones> tones_;
  struct Press {
    char digit;
    bool by_info;
    uint64_t at_us;
  };
  /** Presses whose echo by the other way, media or INFO, may still come. */
  std::vector<Press> presses_;
};

}  // namespace media
