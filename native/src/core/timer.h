// A timer wheel with a resolution of one millisecond. Setting, cancelling and firing are O(1), which suits tens of
// thousands of clocked sources.
#pragma once
#include <cstdint>

namespace media {

/** A timer, embedded in its owner. It cannot be copied or moved, and its destructor cancels it. */
class Timer {
 public:
  using Fire = void (*)(void* owner, uint64_t now_us);

  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { cancel(); }

  void bind(Fire fire, void* owner) {
    fire_ = fire;
    owner_ = owner;
  }
  bool armed() const { return prev_ != nullptr; }
  uint64_t due_us() const { return due_us_; }
  void cancel() {
    if (!prev_) return;
    *prev_ = next_;
    if (next_) next_->prev_ = prev_;
    prev_ = nullptr;
    next_ = nullptr;
  }

 private:
  friend class TimerWheel;
  Timer* next_ = nullptr;
  Timer** prev_ = nullptr;
  uint64_t due_us_ = 0;
  Fire fire_ = nullptr;
  void* owner_ = nullptr;
};

class TimerWheel {
 public:
  explicit TimerWheel(uint64_t now_us = 0) : at_ms_(now_us / 1000) {}

  void start(uint64_t now_us) { at_ms_ = now_us / 1000; }

  /** Sets a timer to fire once, at `due_us` or up to 1 ms later. */
  void set(Timer& t, uint64_t due_us) {
    t.cancel();
    t.due_us_ = due_us;
    uint64_t ms = (due_us + 999) / 1000;
    if (ms <= at_ms_) ms = at_ms_ + 1;
    put(t, ms);
  }

  /** Fires all due timers. */
  void advance(uint64_t now_us) {
    const uint64_t now_ms = now_us / 1000;
    if (now_ms > at_ms_ + kSlots) at_ms_ = now_ms - kSlots;  // one turn visits every slot
    while (at_ms_ < now_ms) {
      ++at_ms_;
      Timer*& slot = slots_[at_ms_ % kSlots];
      Timer* list = slot;
      slot = nullptr;
      // Detach the list from the wheel, so that firing timers can set and cancel others.
      if (list) list->prev_ = &list;
      while (list) {
        Timer* t = list;
        t->cancel();
        if (t->due_us_ > now_us)
          put(*t, (t->due_us_ + 999) / 1000);
        else
          t->fire_(t->owner_, now_us);
      }
    }
  }

  /** Returns the milliseconds until a timer may be due, at most `limit`. */
  int wait_ms(uint64_t now_us, int limit) const {
    const uint64_t now_ms = now_us / 1000;
    for (int i = 0; i < limit; ++i) {
      const uint64_t ms = at_ms_ + 1 + static_cast<uint64_t>(i);
      if (slots_[ms % kSlots]) return ms <= now_ms ? 0 : static_cast<int>(ms - now_ms);
    }
    return limit;
  }

 private:
  static constexpr uint64_t kSlots = 1024;
  void put(Timer& t, uint64_t ms) {
    Timer*& slot = slots_[ms % kSlots];
    t.next_ = slot;
    t.prev_ = &slot;
    if (slot) slot->prev_ = &t.next_;
    slot = &t;
  }
  Timer* slots_[kSlots] = {};
  uint64_t at_ms_;
};

}  // namespace media
