// Real-time priority of a packet thread: a packet waits for nothing that could as well run later.
#pragma once
#include <cstdint>

#include "clock.h"

namespace media {

/** CPU time of the calling thread. */
inline uint64_t thread_cpu_us() {
  return clock_us(CLOCK_THREAD_CPUTIME_ID);
}

/** The lowest priority of SCHED_RR, for the calling thread. Needs CAP_SYS_NICE or RLIMIT_RTPRIO (sched(7)). */
class RealtimePriority {
 public:
  using Clock = uint64_t (*)();

  /** False where the process may not have it, and then all else does nothing. */
  bool take(uint64_t now_us, Clock cpu_us = thread_cpu_us);
  /** To be called now and then. A thread that sleeps no more steps back among all others for a second: on a small
   * machine the processes that could end calls would starve. */
  void look(uint64_t now_us, Clock cpu_us = thread_cpu_us);

 private:
  bool set(bool held);
  bool allowed_ = false, held_ = false;
  uint64_t from_us_ = 0, cpu_us_ = 0;
};

}  // namespace media
