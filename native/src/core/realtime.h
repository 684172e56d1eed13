// Real-time priority for a packet thread, so that packets do not wait for work that can run later.
#pragma once
#include <cstdint>

#include "clock.h"

namespace media {

/** The CPU time of the calling thread. */
inline uint64_t thread_cpu_us() {
  return clock_us(CLOCK_THREAD_CPUTIME_ID);
}

/** The lowest priority of SCHED_RR, for the calling thread. Needs CAP_SYS_NICE or RLIMIT_RTPRIO (sched(7)). */
class RealtimePriority {
 public:
  using Clock = uint64_t (*)();

  /** False when the process may not have it. All other members then do nothing. */
  bool take(uint64_t now_us, Clock cpu_us = thread_cpu_us);
  /** Call it now and then. A thread that never sleeps gives the priority up for a second: on a small
   * machine the processes that could end calls would starve. */
  void look(uint64_t now_us, Clock cpu_us = thread_cpu_us);

 private:
  bool set(bool held);
  bool allowed_ = false, held_ = false;
  uint64_t from_us_ = 0, cpu_us_ = 0;
};

}  // namespace media
