#include "realtime.h"

#include <pthread.h>
#include <sched.h>

namespace media {

namespace {
constexpr uint64_t kWindowUs = 1'000'000;
/** A thread gives the priority up when it has used at least this share of a window, in percent. The kernel's limit
 * (sched_rt_runtime_us) is the same. */
constexpr uint64_t kTooMuch = 95;
}  // namespace

bool RealtimePriority::set(bool held) {
  sched_param p{};
  p.sched_priority = held ? sched_get_priority_min(SCHED_RR) : 0;
  if (pthread_setschedparam(pthread_self(), held ? SCHED_RR : SCHED_OTHER, &p) != 0) return false;
  held_ = held;
  return true;
}

bool RealtimePriority::take(uint64_t now_us, Clock cpu_us) {
  from_us_ = now_us;
  cpu_us_ = cpu_us();
  return allowed_ = set(true);
}

void RealtimePriority::look(uint64_t now_us, Clock cpu_us) {
  if (!allowed_ || now_us - from_us_ < kWindowUs) return;
  const uint64_t used_us = cpu_us() - cpu_us_, span_us = now_us - from_us_;
  from_us_ = now_us;
  cpu_us_ += used_us;
  if (!held_ || used_us * 100 >= span_us * kTooMuch) set(!held_);
}

}  // namespace media
