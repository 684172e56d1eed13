// CPU time and memory of a process and of the machine, read from /proc; clocks and percentiles.
#pragma once
#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

inline uint64_t now_us(clockid_t id) {
  timespec t;
  clock_gettime(id, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000 + static_cast<uint64_t>(t.tv_nsec) / 1000;
}

/** Returns the CPU time of all threads of the processes, from the scheduler, in microseconds. */
inline double cpu_us(const std::vector<int>& pids) {
  double total = 0;
  for (const int pid : pids) {
    const std::string dir = "/proc/" + std::to_string(pid) + "/task";
    DIR* d = opendir(dir.c_str());
    if (!d) continue;
    while (const dirent* e = readdir(d)) {
      if (e->d_name[0] == '.') continue;
      std::ifstream f(dir + "/" + e->d_name + "/schedstat");
      double ns = 0;
      if (f >> ns) total += ns / 1000;
    }
    closedir(d);
  }
  return total;
}

inline long rss_kb(const std::vector<int>& pids) {
  long total = 0;
  for (const int pid : pids) {
    std::ifstream f("/proc/" + std::to_string(pid) + "/statm");
    long pages = 0, resident = 0;
    if (f >> pages >> resident) total += resident * (sysconf(_SC_PAGESIZE) / 1024);
  }
  return total;
}

/** Returns the busy time of the whole machine since some moment, in microseconds. Derives it from the idle time, which
 * the kernel measures by the clock. The kernel samples busy time, and so misjudges bursts of a millisecond. */
inline double machine_us() {
  std::ifstream f("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0;
  f >> name >> user >> nice >> system >> idle >> wait;
  const auto cores = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  return cores * static_cast<double>(now_us(CLOCK_MONOTONIC)) -
         (idle + wait) * 1e6 / static_cast<double>(sysconf(_SC_CLK_TCK));
}

inline uint32_t percentile(std::vector<uint32_t>& v, double p) {
  if (v.empty()) return 0;
  const size_t at = std::min(v.size() - 1, static_cast<size_t>(p * static_cast<double>(v.size())));
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(at), v.end());
  return v[at];
}
