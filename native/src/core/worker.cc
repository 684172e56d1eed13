// The lifetime of a packet thread and of its streams and conferences. Its main loop is in worker_turns.cc.
#include "worker.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "clock.h"
#include "leg.h"

namespace media {

Worker::Worker(int index, WorkerOptions options, EventQueue& events, Recorder& recorder,
               const std::vector<Network>& denied, PortPool& ports)
    : index_(index),
      options_(options),
      ports_(ports),
      wheel_(mono_us()),
      context_{wheel_, events, &recorder, &denied, &counters_, options.opus_complexity},
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event e{};
  e.events = EPOLLIN;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, wake_fd_, &e);
  thread_ = std::thread([this] { run(); });
  if (options.packet_ring && ports.bind_address(4).family == 4) ring_reserved_ = PacketRing::reserve();
  packet_ring_allowed_ = ring_reserved_ >= 0;
  running_.wait(false);  // the thread then knows what the kernel allows
}

Worker::~Worker() {
  stop();
  ::close(epoll_fd_);
  ::close(wake_fd_);
  if (ring_reserved_ >= 0) ::close(ring_reserved_);
}

void Worker::post(std::function<void(uint64_t)> command) {
  if (!commands_.push([command = std::move(command)] { command(mono_us()); })) return;
  const uint64_t one = 1;
  if (::write(wake_fd_, &one, 8) < 0) return;  // a full counter means that the thread is awake
}

void Worker::stop() {
  if (!thread_.joinable()) return;
  post([this](uint64_t now) {
    while (!legs_.empty()) close(legs_.begin()->first, now);
    stopping_ = true;
  });
  thread_.join();
}

void Worker::want_packet_ring() {
  if (packet_ring_wanted_ || !packet_ring()) return;
  packet_ring_wanted_ = true;
  const PortClass mine = ports_.port_class(index());
  std::shared_ptr<PacketRing> ring =
      PacketRing::open(std::exchange(ring_reserved_, -1), ports_.bind_address(4), mine);
  packet_ring_allowed_ = ring != nullptr;
  if (!ring) return;
  post([this, mine, ring = std::move(ring)](uint64_t) {
    packet_ring_ = ring;
    ports_shown_ = mine;
    shown_.resize((mine.last - mine.first) / 2u + 1);
    if (ring_) ring_->trust(ring->begin(), ring->end());
  });
}

double Worker::cpu_seconds() const {
  timespec t{};
  if (!has_clock_ || clock_gettime(cpu_clock_, &t) != 0) return 0;
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

void Worker::open(uint32_t id, Policy policy, PortPair sockets, std::shared_ptr<StreamCounters> counters,
                  std::string cname, uint64_t now_us) {
  auto leg = std::make_unique<Leg>(sockets, ports_.bind_address(sockets.family), *this);
  leg->stream =
      std::make_unique<Stream>(id, std::move(policy), context_, *leg, std::move(counters), std::move(cname), now_us);
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.ptr = &leg->rtp;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, sockets.rtp_fd, &e);
  e.data.ptr = &leg->rtcp;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, sockets.rtcp_fd, &e);
  legs_[id] = std::move(leg);
  counters_.streams += 1;
}

void Worker::close(uint32_t id, uint64_t now_us) {
  const auto at = legs_.find(id);
  if (at == legs_.end()) return;
  at->second->stream->close(now_us);
  const PortPair pair = at->second->sockets;
  legs_.erase(at);
  ::close(pair.rtp_fd);
  ::close(pair.rtcp_fd);
  ports_.give_back(pair.rtp_port, now_us, pair.family);
  counters_.streams += -1;
}

Stream* Worker::find(uint32_t id) {
  const auto at = legs_.find(id);
  return at == legs_.end() ? nullptr : at->second->stream.get();
}

void Worker::open_conference(uint32_t id, int rate_hz) {
  auto mixer = std::make_unique<Mixer>(rate_hz, *context_.recorder);
  Mixer* m = mixer.get();
  m->worker = this;
  m->due_us = mono_us() + 20'000;
  m->timer.bind(
      [](void* p, uint64_t now) {
        auto* self = static_cast<Mixer*>(p);
        if (now > self->due_us + 100'000) self->due_us = now;
        self->due_us += 20'000;
        self->conference.tick(now);
        self->worker->wheel_.set(self->timer, self->due_us);
      },
      m);
  wheel_.set(m->timer, m->due_us);
  mixers_[id] = std::move(mixer);
}

void Worker::close_conference(uint32_t id) {
  mixers_.erase(id);
}

Conference* Worker::find_conference(uint32_t id) {
  const auto at = mixers_.find(id);
  return at == mixers_.end() ? nullptr : &at->second->conference;
}

}  // namespace media
