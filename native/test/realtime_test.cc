// Real-time priority as the kernel sees it, by a clock of our own.
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

/** On a thread of its own: the priority must not stay with the others. */
static void turns() {
  const auto cpu = [] { return spent_us; };
  RealtimePriority priority;
  uint64_t now = 5'000'000;
  const bool allowed = priority.take(now, cpu);
  check::ok(preferred() == allowed, std::string("real-time priority is ") + (allowed ? "held" : "refused, and not held"));
  const auto second = [&](uint64_t cpu_us) {
    now += 1'000'000;
    spent_us += cpu_us;
    priority.look(now, cpu);
    return preferred();
  };
  check::ok(second(600'000) == allowed, "a thread that sleeps between its turns keeps it");
  check::ok(!second(990'000), "one that sleeps no more steps back");
  check::ok(second(990'000) == allowed, "for a second");
  check::ok(second(900'000) == allowed, "and keeps it when it sleeps again");
}

void realtime_tests() {
  std::thread(turns).join();
}
