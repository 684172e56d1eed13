// What surrounds a stream: where its packets leave, and what all streams of a packet thread share.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "address.h"
#include "counters.h"
#include "events.h"
#include "recorder.h"
#include "timer.h"

namespace media {

/** Where packets leave. */
class Wire {
 public:
  virtual ~Wire() = default;
  virtual bool send_rtp(const uint8_t* p, size_t n, const Address& to) = 0;
  virtual bool send_rtcp(const uint8_t* p, size_t n, const Address& to) = 0;
  /** The stream takes packets from this address only: the socket may be connected. Any address when it is unknown. */
  virtual void settled(const Address&) {}
  /** Runs once a second. */
  virtual void look_after(uint64_t) {}
};

/** What all streams of a packet thread share. */
struct ThreadContext {
  TimerWheel& wheel;
  EventQueue& events;
  Recorder* recorder = nullptr;
  const std::vector<Network>* denied = nullptr;
  ThreadCounters* counters = nullptr;
  int opus_complexity = 5;
};

/** A received packet's buffer has this much room behind the packet, for what SRTP adds. */
constexpr size_t kTailRoom = 64;

}  // namespace media
