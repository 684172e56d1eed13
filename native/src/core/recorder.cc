#include "recorder.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"

namespace media {

namespace {
/** How often the thread checks for recordings that are due. */
constexpr uint64_t kPollUs = 50'000;
}  // namespace

Recorder::Recorder(EventQueue& events) : events_(events), wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = std::thread([this] { run(); });
}

Recorder::~Recorder() {
  stop();
  ::close(wake_fd_);
}

void Recorder::add(std::shared_ptr<Recording> recording) {
  active_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  fresh_.push_back(std::move(recording));
}

void Recorder::wake() {
  const uint64_t one = 1;
  if (::write(wake_fd_, &one, 8) < 0) return;  // a full counter means that the thread is awake
}

void Recorder::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  wake();
  thread_.join();
}

void Recorder::take_fresh(std::vector<Entry>& active, uint64_t now_us) {
  std::lock_guard lock(mutex_);
  for (auto& r : fresh_) {
    const uint64_t due_us = r->writer_due_us(now_us);
    active.push_back({std::move(r), due_us});
  }
  fresh_.clear();
}

void Recorder::run() {
  pthread_setname_np(pthread_self(), "recorder");
  // Yield to packet threads: recordings can wait for seconds, packets cannot.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 5);
  std::vector<Entry> active;
  RecordDesk desk;
  for (;;) {
    const bool last = stopping_;
    const uint64_t now = mono_us();
    take_fresh(active, now);
    for (size_t i = 0; i < active.size();) {
      Recording& r = *active[i].recording;
      if (last) r.packet_end(RecordEnd::leg_closed, now);
      if (!r.ending() && now < active[i].due_us) {
        ++i;
        continue;
      }
      if (!r.writer_advance(desk, mono_us())) {
        active[i++].due_us = r.writer_due_us(now);
        continue;
      }
      Event e;
      r.writer_finish(e);
      dropped_ += r.dropped();
      events_.push(std::move(e));
      active[i] = std::move(active.back());
      active.pop_back();
      active_.fetch_sub(1, std::memory_order_relaxed);
    }
    if (last) return;
    pollfd p{wake_fd_, POLLIN, 0};
    if (poll(&p, 1, active.empty() ? 1000 : static_cast<int>(kPollUs / 1000)) > 0) {
      uint64_t n;
      if (::read(wake_fd_, &n, 8) < 0) continue;
    }
  }
}

}  // namespace media
