#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstring>

#include "clock.h"

namespace media {

/** A stream with its sockets. */
struct Worker::Leg final : Wire {
  Leg(PortPair pair, const Address& bind, int epoll) : sockets(pair), own(bind), epoll_fd(epoll) {
    own.port = pair.rtp_port;
  }
  ~Leg() override { dissolve(); }

  /** Sends and receives cost a tenth less on a connected socket. Strangers are then met by a second socket on the same
     port, so that they are still counted, and get no ICMP error that would tell them that somebody is here. */
  void settled(const Address& peer) override {
    dissolve();
    if (!peer.known()) return;
    const int one = 1, zero = 0;
    const int fd = socket(own.family == 4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    sockaddr_in6 sa;
    const socklen_t n = own.to(sa);
    // Only for the moment of binding do both allow company: afterwards nobody else can bind the port.
    setsockopt(sockets.rtp_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (own.family == 6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    sockaddr_in6 to;
    const socklen_t to_size = peer.to(to);
    // Connected before the guard is there: otherwise a packet of the peer could go to the guard and overtake those that
    // wait here.
    const bool joined = ::connect(sockets.rtp_fd, reinterpret_cast<sockaddr*>(&to), to_size) == 0;
    const bool bound = joined && ::bind(fd, reinterpret_cast<sockaddr*>(&sa), n) == 0;
    setsockopt(sockets.rtp_fd, SOL_SOCKET, SO_REUSEADDR, &zero, sizeof zero);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &zero, sizeof zero);
    if (!bound) {
      if (joined) disconnect();
      ::close(fd);
      return;
    }
    const int little = 16 * 1024;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    guard_fd = fd;
    connected = peer;
    epoll_event e{};
    e.events = EPOLLIN;
    e.data.ptr = &guard;
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e);
  }

  void dissolve() {
    if (guard_fd < 0) return;
    disconnect();
    ::close(guard_fd);
    guard_fd = -1;
    connected = Address{};
  }

  void disconnect() {
    sockaddr none{};
    none.sa_family = AF_UNSPEC;
    ::connect(sockets.rtp_fd, &none, sizeof none);
  }

  bool send(int fd, const uint8_t* p, size_t n, const Address& to, Address& cached, sockaddr_in6& sa, socklen_t& size) {
    if (!(cached == to)) {
      cached = to;
      size = to.to(sa);
    }
    if (::sendto(fd, p, n, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&sa), size) >= 0) return true;
    // An ICMP error of an earlier packet is reported here once; this packet was not sent for it.
    return errno == ECONNREFUSED && ::sendto(fd, p, n, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&sa), size) >= 0;
  }
  bool send_rtp(const uint8_t* p, size_t n, const Address& to) override {
    if (guard_fd >= 0 && to == connected)
      return ::send(sockets.rtp_fd, p, n, MSG_DONTWAIT) >= 0 ||
             (errno == ECONNREFUSED && ::send(sockets.rtp_fd, p, n, MSG_DONTWAIT) >= 0);
    return send(sockets.rtp_fd, p, n, to, rtp_to, rtp_sa, rtp_size);
  }
  bool send_rtcp(const uint8_t* p, size_t n, const Address& to) override {
    return send(sockets.rtcp_fd, p, n, to, rtcp_to, rtcp_sa, rtcp_size);
  }

  PortPair sockets;
  Address own, connected;
  const int epoll_fd;
  int guard_fd = -1;
  Socket rtp{this, Which::rtp}, rtcp{this, Which::rtcp}, guard{this, Which::guard};
  Address rtp_to, rtcp_to;
  sockaddr_in6 rtp_sa, rtcp_sa;
  socklen_t rtp_size = 0, rtcp_size = 0;
  sockaddr_in6 last_from{};
  Address last_address;
  std::unique_ptr<Stream> stream;
};

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
}

Worker::~Worker() {
  stop();
  ::close(epoll_fd_);
  ::close(wake_fd_);
}

void Worker::post(std::function<void(uint64_t)> command) {
  if (!commands_.push([command = std::move(command)] { command(mono_us()); })) return;
  const uint64_t one = 1;
  if (::write(wake_fd_, &one, 8) < 0) return;  // only a full counter: it is awake
}

void Worker::stop() {
  if (!thread_.joinable()) return;
  post([this](uint64_t now) {
    while (!legs_.empty()) close(legs_.begin()->first, now);
    stopping_ = true;
  });
  thread_.join();
}

double Worker::cpu_seconds() const {
  timespec t{};
  if (!has_clock_ || clock_gettime(cpu_clock_, &t) != 0) return 0;
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

void Worker::open(uint32_t id, Policy policy, PortPair sockets, std::shared_ptr<StreamCounters> counters,
                  std::string cname, uint64_t now_us) {
  auto leg = std::make_unique<Leg>(sockets, ports_.bind_address(), epoll_fd_);
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
  ports_.give_back(pair.rtp_port, now_us);
  counters_.streams += -1;
}

Stream* Worker::find(uint32_t id) {
  const auto at = legs_.find(id);
  return at == legs_.end() ? nullptr : at->second->stream.get();
}

void Worker::open_conference(uint32_t id, int rate_hz) {
  auto mixer = std::make_unique<Mixer>(rate_hz);
  Mixer* m = mixer.get();
  m->worker = this;
  m->due_us = mono_us() + 20'000;
  m->timer.bind(
      [](void* p, uint64_t now) {
        auto* self = static_cast<Mixer*>(p);
        if (now > self->due_us + 100'000) self->due_us = now;
        self->due_us += 20'000;
        self->conference.tick();
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

void Worker::read(Socket& s, uint64_t now_us) {
  uint8_t* packet = buffer_ + kHeadRoom;
  sockaddr_in6 from;
  socklen_t size = sizeof from;
  const int fd = s.which == Which::rtp    ? s.leg->sockets.rtp_fd
                 : s.which == Which::rtcp ? s.leg->sockets.rtcp_fd
                                          : s.leg->guard_fd;
  const ssize_t n = ::recvfrom(fd, packet, 2048, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
  if (n < 0) return;
  Leg& leg = *s.leg;
  const size_t compared = from.sin6_family == AF_INET ? 8 : sizeof from;
  if (std::memcmp(&from, &leg.last_from, compared) != 0) {
    std::memcpy(&leg.last_from, &from, compared);
    leg.last_address = Address::from(reinterpret_cast<const sockaddr*>(&from));
  }
  if (s.which == Which::rtcp)
    leg.stream->on_rtcp(packet, static_cast<size_t>(n), leg.last_address, now_us, false);
  else
    leg.stream->on_rtp(packet, static_cast<size_t>(n), leg.last_address, now_us);
}

void Worker::run() {
  const std::string name = "media-" + std::to_string(index_);
  pthread_setname_np(pthread_self(), name.c_str());
  prctl(PR_SET_TIMERSLACK, 1000);
  if (pthread_getcpuclockid(pthread_self(), &cpu_clock_) == 0) has_clock_ = true;
  epoll_event ready[512];
  uint64_t woke_us = mono_us();
  wheel_.start(woke_us);
  for (;;) {
    commands_.run_all();
    if (stopping_) return;
    uint64_t now = mono_us();
    wheel_.advance(now);
    // Packets that come in the same millisecond share a wake-up; alone, they are taken at once.
    if (options_.coalesce_us && now < woke_us + options_.coalesce_us) {
      const uint64_t until = woke_us + options_.coalesce_us;
      const timespec t{static_cast<time_t>(until / 1'000'000), static_cast<long>(until % 1'000'000 * 1000)};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
      now = until;
    }
    int n = epoll_wait(epoll_fd_, ready, 512, commands_.empty() ? wheel_.wait_ms(now, 1000) : 0);
    if (!commands_.empty()) {
      // What was asked before a packet came holds for that packet. A command may close sockets, so what is ready is
      // asked anew.
      commands_.run_all();
      if (stopping_) return;
      n = epoll_wait(epoll_fd_, ready, 512, 0);
    }
    now = woke_us = mono_us();
    ++counters_.wakeups;
    for (int i = 0; i < n; ++i) {
      if (ready[i].data.ptr) {
        read(*static_cast<Socket*>(ready[i].data.ptr), now);
      } else {
        uint64_t count;
        if (::read(wake_fd_, &count, 8) < 0) continue;
      }
    }
  }
}

}  // namespace media
