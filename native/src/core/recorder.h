// The thread that writes all recordings of an engine.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "recording.h"

namespace media {

class Recorder {
 public:
  explicit Recorder(EventQueue& events);
  ~Recorder();

  void add(std::shared_ptr<Recording> recording);
  /** Wakes the thread because a recording has ended. Called on any thread. */
  void wake();
  /** Ends all recordings and stops the thread. */
  void stop();
  size_t active() const { return active_.load(std::memory_order_relaxed); }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::shared_ptr<Recording> recording;
    uint64_t due_us;
  };
  void run();
  void take_fresh(std::vector<Entry>& active, uint64_t now_us);

  EventQueue& events_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Recording>> fresh_;
  std::atomic<bool> stopping_{false};
  std::atomic<size_t> active_{0};
  std::atomic<uint64_t> dropped_{0};
  int wake_fd_;
  std::thread thread_;
};

}  // namespace media
