// The events that the data plane reports to JavaScript, in a bounded queue. Relayed packets cause no events.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "queue.h"

namespace media {

enum class EventType : uint8_t {
  none,
  latched,
  first_packet,
  silent,
  srtp_failed,
  key,
  play_ended,
  mark,
  digits_sent,
  record_changed,
  record_ended,
  rtcp,
  voice,
  speech,
  feed_cut,
  tone,
  tap,
  raw,
};

/** A pause of a recording: where it begins in the file, and how long it lasted. */
struct RecordPause {
  int64_t at_ms = 0, length_ms = 0;
  bool silent = false;
};

struct Event {
  EventType type = EventType::none;
  uint32_t stream = 0;
  int64_t a = 0, b = 0;  // the type decides: a port, a time or a duration in ms, a size
  bool flag = false;
  std::string id, text, detail, sha256;
  std::vector<uint8_t> bytes;
  std::vector<int16_t> samples;
  std::vector<RecordPause> pauses;
};

/** The packet threads and the recorder write events; one consumer reads them. Audio may fill half of the queue: when
 * the consumer stands still, audio is lost first, and not the marks and ends that others wait for. */
class EventQueue {
 public:
  explicit EventQueue(size_t capacity) : queue_(capacity), most_audio_(capacity / 2) {}

  /** Sets a function that producers call, on their own thread, to wake the consumer. */
  void on_wake(std::function<void()> wake) { wake_ = std::move(wake); }

  void push(Event&& e) {
    const bool audio = e.type == EventType::tap;
    const bool room = !audio || audio_.fetch_add(1, std::memory_order_relaxed) < most_audio_;
    if (!room || !queue_.push(std::move(e))) {
      if (audio) audio_.fetch_sub(1, std::memory_order_relaxed);
      lost_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    if (!pending_.exchange(true, std::memory_order_acq_rel) && wake_) wake_();
  }

  /** Call this first, then `pop` until it returns false. */
  void begin_read() { pending_.store(false, std::memory_order_release); }
  bool pop(Event& e) {
    if (!queue_.pop(e)) return false;
    if (e.type == EventType::tap) audio_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  BoundedQueue<Event> queue_;
  const size_t most_audio_;
  std::atomic<size_t> audio_{0};  // events of audio that wait
  std::function<void()> wake_;
  std::atomic<bool> pending_{false};
  std::atomic<uint64_t> lost_{0};
};

}  // namespace media
