// The keys that a stream's peer presses: told to the outside once each, and passed on to the stream's own peer.
//
// Thread: the packet thread of its stream. Memory: cold, touched by packets of keys only.
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

  /** Whether keys reach the stream that this one sends to. */
  void pass_on(bool enabled) { passes_on_ = enabled; }
  void on_event(uint8_t* packet, const RtpView& v, const PayloadFacts& facts, uint64_t now_us);
  /** A key was heard as its tones. */
  void heard(char digit, uint64_t now_us);
  /** Ends a key whose end was lost. */
  void expire(uint64_t now_us);

 private:
  void begin(uint32_t ts);
  void relay(uint8_t* packet, const RtpView& v, const TelephoneEvent& e, const PayloadFacts& facts, uint64_t now_us);
  void on_key(const KeyReceiver::Key& key, bool inband, uint64_t now_us);
  bool is_echo(const KeyReceiver::Key& key);

  Stream& stream_;
  KeyReceiver received_;
  bool passes_on_ = true;
  bool any_ = false, waits_ = false;
  uint32_t ts_ = 0;
  struct Tones {
    char digit;
    uint64_t at_us;
  };
  /** Keys heard as tones whose event may still come. */
  std::vector<Tones> tones_;
};

}  // namespace media
