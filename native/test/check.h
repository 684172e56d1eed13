// A minimal test harness. Each check prints one line of TAP.
#pragma once
#include <cstdio>
#include <string>

namespace check {

inline int count = 0, failed = 0;

/** The turns of a loop that waits for a condition for a millisecond or more each time. Only a fault reaches it. */
inline constexpr int kPatience = 30'000;

inline bool ok(bool holds, const std::string& title) {
  std::printf("%sok %d - %s\n", holds ? "" : "not ", ++count, title.c_str());
  if (!holds) ++failed;
  return holds;
}

template <typename A, typename B>
bool equal(const A& a, const B& b, const std::string& title) {
  const bool same = a == b;
  if (!ok(same, title)) std::printf("# got %s, wanted %s\n", std::to_string(a).c_str(), std::to_string(b).c_str());
  return same;
}

inline bool within(double value, double low, double high, const std::string& title) {
  const bool holds = value >= low && value <= high;
  if (!ok(holds, title)) std::printf("# got %g, wanted %g to %g\n", value, low, high);
  return holds;
}

}  // namespace check
