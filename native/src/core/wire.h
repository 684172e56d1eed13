// The environment of a stream: its outlet for packets, and the state that all streams of a packet thread share.
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

/** Sends a stream's packets. */
class Wire {
 public:
  virtual ~Wire() = default;
  virtual bool send_rtp(const uint8_t* p, size_t n, const Address& to) = 0;
  virtual bool send_rtcp(const uint8_t* p, size_t n, const Address& to) = 0;
  /** Reports that the stream accepts packets only from this address, so that the wire can connect its socket. With an
   * unknown address the stream accepts any sender. */
  virtual void settled(const Address&) {}
  /** Runs once a second. */
  virtual void look_after(uint64_t) {}
};

/** The state that all streams of a packet thread share. */
struct ThreadContext {
  TimerWheel& wheel;
  EventQueue& events;
  Recorder* recorder = nullptr;
  const std::vector<Network>* denied = nullptr;
  ThreadCounters* counters = nullptr;
  int opus_complexity = 5;
};

/** The room after the packet in a receive buffer, for the bytes that SRTP adds. */
constexpr size_t kTailRoom = 64;

}  // namespace media
