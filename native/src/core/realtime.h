// Real-time priority for a packet thread, so that packets do not wait for less urgent work.
#pragma once
#include <cstdint>

#include "clock.h"

namespace media {

/** Returns the CPU time of the calling thread in microseconds. */
inline uint64_t thread_cpu_us() {
  return clock_us(CLOCK_THREAD_CPUTIME_ID);
}

/** Gives the calling thread the lowest SCHED_RR priority. Needs CAP_SYS_NICE or RLIMIT_RTPRIO (sched(7)). */
class RealtimePriority {
 public:
  using Clock = uint64_t (*)();

  /** Takes the priority. False when the system denies it; the other members then do nothing. */
  bool take(uint64_t now_us, Clock cpu_us = thread_cpu_us);
  /** Call this regularly. A thread that almost never sleeps gives the priority up for a second. Otherwise it would
   * starve the processes that could end calls on a small machine. */
  void look(uint64_t now_us, Clock cpu_us = thread_cpu_us);

 private:
  bool set(bool held);
  bool allowed_ = false, held_ = false;
  uint64_t from_us_ = 0, cpu_us_ = 0;
};

}  // namespace media
