// Real-time priority as the kernel reports it, with a simulated clock.
#include "../src/core/realtime.h"

#include <sched.h>

#include <string>
#include <thread>

#include "check.h"

using namespace media;

static uint64_t spent_us = 0;

static bool preferred() {
  return sched_getscheduler(0) == SCHED_RR;
}

/** Runs on its own thread, so that other tests do not inherit the priority. */
static void turns() {
  const auto cpu = [] { return spent_us; };
  RealtimePriority priority;
  uint64_t now = 5'000'000;
  const bool allowed = priority.take(now, cpu);
  check::ok(preferred() == allowed,
            std::string("real-time priority is ") + (allowed ? "held" : "refused, and not held"));
  const auto second = [&](uint64_t cpu_us) {
    now += 1'000'000;
    spent_us += cpu_us;
    priority.look(now, cpu);
    return preferred();
  };
  check::ok(second(600'000) == allowed, "a thread that sleeps between turns keeps real-time priority");
  check::ok(!second(990'000), "a thread that stops sleeping gives real-time priority up");
  check::ok(second(990'000) == allowed, "a busy thread takes real-time priority again after a second");
  check::ok(second(900'000) == allowed, "a thread that sleeps again keeps real-time priority");
}

void realtime_tests() {
  std::thread(turns).join();
}
