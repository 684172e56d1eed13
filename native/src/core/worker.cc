#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "clock.h"

namespace media {

namespace {
enum class Tag : uint8_t { receive = 1, send, epoll };

uint64_t tag_of(Tag what, uint32_t place, uint32_t turn) {
  return static_cast<uint64_t>(turn) << 32 | place << 4 | static_cast<uint32_t>(what);
}
Tag what_of(uint64_t tag) {
  return static_cast<Tag>(tag & 15);
}
uint32_t place_of(uint64_t tag) {
  return static_cast<uint32_t>(tag) >> 4;
}
uint32_t turn_of(uint64_t tag) {
  return static_cast<uint32_t>(tag >> 32);
}

constexpr unsigned kPlaces = 16'384;
/** So many packets a wake-up share its cost well: with more, waiting buys nothing but delay. */
constexpr double kGoodBatch = 128;
/** Packets in a second that no negotiated stream brings: such a socket is read once a wake-up instead, and its queue in
 * the kernel drops the rest. */
constexpr uint32_t kFlood = 1000;
}  // namespace

/** A stream with its sockets. */
struct Worker::Leg final : Wire {
  // What each packet touches, in the first lines of memory.
  Worker& worker;
  int place = -1, guard_fd = -1;
  PortPair sockets;
  Address connected;
  uint32_t in_second = 0;
  bool flooded = false;
  uint64_t second_us = 0;
  Address from_ring;

  Leg(PortPair pair, const Address& bind, Worker& on) : worker(on), sockets(pair), own(bind) {
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
    epoll_ctl(worker.epoll_fd_, EPOLL_CTL_ADD, fd, &e);
    to_ring();
  }

  void dissolve() {
    if (guard_fd < 0) return;
    to_epoll();
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
  /** A connected socket needs no sender's address with each packet, so the ring can read it. */
  void to_ring() {
    if (!worker.ring_ || place >= 0 || worker.free_places_.empty()) return;
    const uint32_t at = worker.free_places_.back();
    if (!worker.ring_->attach(at, sockets.rtp_fd)) return;
    worker.free_places_.pop_back();
    epoll_ctl(worker.epoll_fd_, EPOLL_CTL_DEL, sockets.rtp_fd, nullptr);
    Place& p = worker.places_[at];
    p.leg = this;
    p.stream = stream.get();
    ++p.turn;
    place = static_cast<int>(at);
    from_ring = connected;
    worker.ring_->receive(at, tag_of(Tag::receive, at, p.turn));
  }

  void to_epoll() {
    if (place < 0) return;
    const auto at = static_cast<uint32_t>(place);
    worker.ring_->cancel(tag_of(Tag::receive, at, worker.places_[at].turn));
    worker.ring_->attach(at, -1);
    worker.places_[at].leg = nullptr;
    worker.free_places_.push_back(at);
    place = -1;
    epoll_event e{};
    e.events = EPOLLIN;
    e.data.ptr = &rtp;
    epoll_ctl(worker.epoll_fd_, EPOLL_CTL_ADD, sockets.rtp_fd, &e);
  }

  /** Counts a packet of the RTP socket; a flood is moved to where it costs little, and back when it is over. */
  void count(uint64_t now_us) {
    if (now_us - second_us > 1'000'000) {
      if (flooded && in_second < kFlood / 2) {
        flooded = false;
        if (guard_fd >= 0) to_ring();
      }
      second_us = now_us;
      in_second = 0;
    }
    if (++in_second == kFlood && !flooded) {
      flooded = true;
      to_epoll();
    }
  }

  bool send_rtp(const uint8_t* p, size_t n, const Address& to) override {
    if (place >= 0 && to == connected) {
      const auto at = static_cast<uint32_t>(place);
      worker.ring_->send(at, p, n, tag_of(Tag::send, at, worker.places_[at].turn));
      return true;
    }
    if (guard_fd >= 0 && to == connected)
      return ::send(sockets.rtp_fd, p, n, MSG_DONTWAIT) >= 0 ||
             (errno == ECONNREFUSED && ::send(sockets.rtp_fd, p, n, MSG_DONTWAIT) >= 0);
    return send(sockets.rtp_fd, p, n, to, rtp_to, rtp_sa, rtp_size);
  }
  bool send_rtcp(const uint8_t* p, size_t n, const Address& to) override {
    return send(sockets.rtcp_fd, p, n, to, rtcp_to, rtcp_sa, rtcp_size);
  }

  Address own;
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
  auto leg = std::make_unique<Leg>(sockets, ports_.bind_address(), *this);
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
  uint8_t* packet = buffer_;
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
  if (s.which == Which::rtcp) {
    leg.stream->on_rtcp(packet, static_cast<size_t>(n), leg.last_address, now_us, false);
    return;
  }
  leg.stream->on_rtp(packet, static_cast<size_t>(n), leg.last_address, now_us);
  if (s.which == Which::rtp && leg.guard_fd >= 0) leg.count(now_us);
}

/** Reads each socket that epoll reports, once. */
int Worker::take_ready(int timeout_ms) {
  epoll_event ready[512];
  const int n = epoll_wait(epoll_fd_, ready, 512, timeout_ms);
  if (!commands_.empty()) {
    // What was asked before a packet came holds for that packet. A command may close sockets, so what is ready is asked
    // anew.
    commands_.run_all();
    return stopping_ ? 0 : take_ready(0);
  }
  now_us_ = mono_us();
  for (int i = 0; i < n; ++i) {
    if (ready[i].data.ptr) {
      read(*static_cast<Socket*>(ready[i].data.ptr), now_us_);
    } else {
      uint64_t count;
      if (::read(wake_fd_, &count, 8) < 0) continue;
    }
  }
  return n;
}

void Worker::complete(const Uring::Completion& c, uint64_t now_us) {
  const uint32_t at = place_of(c.tag);
  if (what_of(c.tag) == Tag::epoll) {
    epoll_watched_ = false;
    return;
  }
  Place& place = places_[at];
  if (!place.leg || place.turn != turn_of(c.tag)) return;
  Leg& leg = *place.leg;
  if (what_of(c.tag) == Tag::send) {
    leg.stream->sending_failed();
    return;
  }
  if (Uring::unusable(c.result)) return leg.to_epoll();
  // Out of buffers, or an ICMP error of something sent earlier: neither ends a stream.
  if (!c.more) ring_->receive(at, c.tag);
  if (!c.packet || c.result <= 0) return;
  leg.stream->on_rtp(c.packet, static_cast<size_t>(c.result), leg.from_ring, now_us);
  leg.count(now_us);
}

/** Thousands of streams do not fit the caches: what the next packets want is on its way while this one is handled. */
void Worker::fetch_ahead() {
  const auto place = [this](unsigned n) -> const Place* {
    const uint64_t tag = ring_->ahead(n);
    return tag && what_of(tag) == Tag::receive ? &places_[place_of(tag)] : nullptr;
  };
  if (const Place* p = place(4)) __builtin_prefetch(p);
  if (const Place* p = place(3); p && p->leg) {
    __builtin_prefetch(p->leg, 1);
    p->stream->fetch();
  }
  if (const Place* p = place(2); p && p->leg) p->stream->fetch_peer();
  if (const Place* p = place(1); p && p->leg) p->stream->fetch_outlet();
}

/** Takes what the ring has brought, a few dozen packets at a time: all that they cause to be sent leaves together. */
void Worker::take_completions() {
  Uring::Completion c;
  for (int turn = 0; turn < 128; ++turn) {
    int n = 0;
    for (; n < 64 && ring_->next(c); ++n) {
      fetch_ahead();
      complete(c, now_us_);
    }
    ring_->submit();
    ring_->give_back();
    if (n == 0 && !ring_->unfinished()) break;
  }
}

/** Packets that come soon after each other share a wake-up; alone, they are taken at once. */
void Worker::pause() {
  const double good = packets_per_us_ > 0 ? kGoodBatch / packets_per_us_ : 1e9;
  const uint64_t until = woke_us_ + static_cast<uint64_t>(std::min(good, static_cast<double>(options_.coalesce_us)));
  if (now_us_ + 20 >= until) return;
  const timespec t{static_cast<time_t>(until / 1'000'000), static_cast<long>(until % 1'000'000 * 1000)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
  now_us_ = until;
}

void Worker::run() {
  const std::string name = "media-" + std::to_string(index_);
  pthread_setname_np(pthread_self(), name.c_str());
  prctl(PR_SET_TIMERSLACK, 1000);
  if (pthread_getcpuclockid(pthread_self(), &cpu_clock_) == 0) has_clock_ = true;
  if (options_.io_uring && (ring_ = Uring::open(kPlaces))) {
    places_.resize(ring_->places());
    for (uint32_t i = ring_->places(); i > 0; --i) free_places_.push_back(i - 1);
    rings_ = true;
  }
  woke_us_ = now_us_ = mono_us();
  wheel_.start(woke_us_);
  for (;;) {
    commands_.run_all();
    if (stopping_) break;
    now_us_ = mono_us();
    wheel_.advance(now_us_);
    if (ring_) ring_->submit();
    pause();
    const uint64_t before = counters_.packets_received, last_us = woke_us_;
    const int limit_ms = commands_.empty() ? wheel_.wait_ms(now_us_, 1000) : 0;
    if (!ring_) {
      take_ready(limit_ms);
      woke_us_ = now_us_;
    } else {
      if (!epoll_watched_) {
        ring_->poll_once(epoll_fd_, tag_of(Tag::epoll, 0, 0));
        epoll_watched_ = true;
      }
      ring_->submit(static_cast<uint64_t>(limit_ms) * 1000);
      commands_.run_all();
      if (stopping_) break;
      woke_us_ = now_us_ = mono_us();
      take_completions();
      if (!epoll_watched_) {
        take_ready(0);
        ring_->submit();
      }
    }
    ++counters_.wakeups;
    const double span = static_cast<double>(std::max<uint64_t>(woke_us_ - last_us, 1));
    const double rate = static_cast<double>(counters_.packets_received - before) / span;
    packets_per_us_ += (rate - packets_per_us_) / 16;
  }
  ring_.reset();
}

}  // namespace media
