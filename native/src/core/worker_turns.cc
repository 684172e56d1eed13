// The main loop of a packet thread: it sleeps, wakes, takes the received packets and sends the resulting ones.
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "clock.h"
#include "datagram.h"
#include "leg.h"
#include "ring_tag.h"

namespace media {

namespace {
constexpr unsigned kPlaces = 16'384;
/** The number of packets that share the cost of a wake-up well enough. Waiting for more only adds delay. */
constexpr double kGoodBatch = 128;
/** The prefetching of a packet's stream begins this many packets ahead. */
constexpr int kAhead = 8;
/** The prefetching of a frame begins this many frames ahead. */
constexpr int kFramesAhead = kAhead + 4;
/** The number of frames to handle before sending the resulting packets. Uring's queue has room for them. */
constexpr unsigned kFramesAtOnce = 64;
/** A thread whose timers come this long after it woke, or should have woken, has stood still. Timers conclude from
 * nothing shorter than a tick. */
constexpr uint64_t kStoodUs = 10'000;
/** The most packets of a socket to read from epoll before the timers that are late. */
constexpr int kCatchUp = 16;
}  // namespace

bool Worker::read(Socket& s, uint64_t now_us) {
  uint8_t* packet = buffer_;
  sockaddr_in6 from;
  socklen_t size = sizeof from;
  const int fd = s.which == Which::rtp    ? s.leg->sockets.rtp_fd
                 : s.which == Which::rtcp ? s.leg->sockets.rtcp_fd
                                          : s.leg->guard_fd;
  const ssize_t n = ::recvfrom(fd, packet, 2048, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
  if (n < 0) return false;
  Leg& leg = *s.leg;
  const size_t compared = from.sin6_family == AF_INET ? 8 : sizeof from;
  if (std::memcmp(&from, &leg.last_from, compared) != 0) {
    std::memcpy(&leg.last_from, &from, compared);
    leg.last_address = Address::from(reinterpret_cast<const sockaddr*>(&from));
  }
  if (s.which == Which::rtcp) {
    leg.stream->on_rtcp(packet, static_cast<size_t>(n), leg.last_address, now_us, false);
    return true;
  }
  if (s.which == Which::guard || leg.note_delivered(packet, static_cast<size_t>(n)))
    leg.stream->on_rtp(packet, static_cast<size_t>(n), leg.last_address, now_us);
  if (leg.mixed) leg.look_whether_pure();
  if (s.which == Which::rtp && leg.guard_fd >= 0) leg.count(now_us);
  return true;
}

/** Reads each socket that epoll reports once. */
int Worker::take_ready(int timeout_ms) {
  epoll_event ready[512];
  const int n = epoll_wait(epoll_fd_, ready, 512, timeout_ms);
  // SIGCONT interrupts the wait (signal(7)); packets may have come since the process was stopped.
  if (n < 0 && timeout_ms > 0) return take_ready(0);
  if (!commands_.empty()) {
    // Run earlier commands before the packets. They may close sockets, so poll again.
    commands_.run_all();
    return stopping_ ? 0 : take_ready(0);
  }
  now_us_ = mono_us();
  for (int i = 0; i < n; ++i) {
    auto* socket = static_cast<Socket*>(ready[i].data.ptr);
    if (socket == &frames_) {
      watch_frames(false);
    } else if (socket) {
      read(*socket, now_us_);
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
    place.stream->sending_failed();
    return;
  }
  if (Uring::unusable(c.result)) return leg.to_epoll();
  // Restart the receive after a lack of buffers or the ICMP error of an earlier packet.
  if (!c.more) leg.receive_ended(now_us);
  if (!c.packet || c.result <= 0) return;
  if (leg.note_delivered(c.packet, static_cast<size_t>(c.result)))
    place.stream->on_rtp(c.packet, static_cast<size_t>(c.result), leg.from_ring, now_us);
  leg.count(now_us);
}

/** Prefetches the memory of the next packets while this one is handled, because thousands of streams do not fit the
 * caches. `next` is the offset of the next completion from the first waiting one; it is negative before the first. */
void Worker::fetch_ahead(int next) {
  const auto place = [this](int n) -> const Place* {
    const uint64_t tag = n < 0 ? 0 : ring_->ahead(static_cast<unsigned>(n));
    return tag && what_of(tag) == Tag::receive ? &places_[place_of(tag)] : nullptr;
  };
  if (const Place* p = place(next + kAhead)) __builtin_prefetch(p);
  if (const Place* p = place(next + 6); p && p->leg) {
    __builtin_prefetch(&p->leg->second_us, 1);
    p->stream->fetch();
  }
  if (const Place* p = place(next + 4); p && p->leg) p->stream->fetch_peer();
  if (const Place* p = place(next + 2); p && p->leg) p->stream->fetch_outlet();
  if (const Place* p = place(next + 1); p && p->leg) p->stream->fetch_record();
}

/** Handles the completions of io_uring in batches of up to 64 packets. The resulting packets leave together. */
void Worker::take_completions() {
  Uring::Completion c;
  for (int turn = 0; turn < 128; ++turn) {
    for (int next = -kAhead; next < 0; ++next) fetch_ahead(next);
    int n = 0;
    for (; n < 64 && ring_->next(c); ++n) {
      fetch_ahead(0);
      complete(c, now_us_);
    }
    ring_->submit();
    ring_->give_back();
    if (n == 0 && !ring_->unfinished() && !ring_->ahead(0)) break;
  }
}

Worker::Shown* Worker::shown_at(uint16_t rtp_port) {
  return packet_ring_ && ports_shown_.holds(rtp_port) ? &shown_[(rtp_port - ports_shown_.first) / 2u] : nullptr;
}

void Worker::take_frame(const PacketRing::Frame& frame) {
  Datagram d;
  if (!(frame.carried ? read_datagram(frame.packet, frame.size, frame.verified, d)
                      : read_flow(frame.packet, frame.size, d)))
    return;
  Shown* at = shown_at(d.to_port);
  if (!at || !at->leg || d.from_ip != at->peer_ip || d.from_port != at->peer_port || d.to_ip != at->own_ip) return;
  Leg& leg = *at->leg;
  if (!frame.carried) return leg.note_uncarried();
  if (!leg.note_frame(d.payload, frame.interface, now_us_)) return;
  at->stream->on_rtp(d.payload, d.size, leg.from_ring, now_us_);
  leg.count(now_us_);
}

/** Prefetches like fetch_ahead, for frames. Frames are adjacent in memory, but their streams are not. */
void Worker::fetch_frames_ahead(int next) {
  const auto shown = [&](int n) -> const Shown* {
    return next + n < 0 ? nullptr : shown_at(packet_ring_->ahead(static_cast<unsigned>(next + n)));
  };
  packet_ring_->fetch(static_cast<unsigned>(next + kFramesAhead));
  if (const Shown* s = shown(kAhead)) __builtin_prefetch(s);
  if (const Shown* s = shown(6); s && s->leg) {
    __builtin_prefetch(&s->leg->second_us, 1);
    s->stream->fetch();
  }
  if (const Shown* s = shown(4); s && s->leg) s->stream->fetch_peer();
  if (const Shown* s = shown(2); s && s->leg) s->stream->fetch_outlet();
  if (const Shown* s = shown(1); s && s->leg) s->stream->fetch_record();
}

/** Handles frames. Runs after the sockets, which hold the packets from before a stream entered the packet ring. */
void Worker::take_frames() {
  if (!packet_ring_) return;
  frames_flow_ = packet_ring_->ahead(0) != 0;
  if (frames_flow_)
    for (int next = -kFramesAhead; next < 0; ++next) fetch_frames_ahead(next);
  PacketRing::Frame frame;
  for (unsigned n = kFramesAtOnce; n == kFramesAtOnce;) {
    for (n = 0; n < kFramesAtOnce && packet_ring_->next(frame); ++n) {
      fetch_frames_ahead(0);
      take_frame(frame);
    }
    if (ring_) ring_->submit();
    packet_ring_->give_back();
  }
  for (size_t i = 0; i < changing_.size(); ++i)
    if (Shown* at = shown_at(changing_[i]); at && at->leg) at->leg->enter_or_leave_ring(now_us_);
  changing_.clear();
  if (now_us_ - drops_looked_us_ < 1'000'000) return;
  drops_looked_us_ = now_us_;
  counters_.packet_ring_drops += packet_ring_->take_drops();
}

/** Sets whether a frame wakes the thread. While frames flow, the thread polls the ring instead. */
void Worker::watch_frames(bool watched) {
  if (!packet_ring_ || watched == frames_watched_) return;
  frames_watched_ = watched;
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.ptr = &frames_;
  epoll_ctl(epoll_fd_, watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, packet_ring_->fd(), &e);
}

/** Sleeps so that packets in quick succession share a wake-up. A lone packet does not wait. */
void Worker::pause() {
  const double good = packets_per_us_ > 0 ? kGoodBatch / packets_per_us_ : 1e9;
  const uint64_t until = woke_us_ + static_cast<uint64_t>(std::min(good, static_cast<double>(options_.coalesce_us)));
  if (now_us_ + 20 >= until) return;
  const timespec t{static_cast<time_t>(until / 1'000'000), static_cast<long>(until % 1'000'000 * 1000)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
  now_us_ = until;
}

/** Waits at most `limit_ms` for packets or commands, and handles those that have come. False when epoll reported no
 * socket: a socket that it reports may hold more packets. */
bool Worker::take_packets(int limit_ms) {
  if (!ring_) {
    const bool any = take_ready(limit_ms) > 0;
    take_frames();
    woke_us_ = now_us_;
    return any;
  }
  if (!epoll_watched_) {
    ring_->poll_once(epoll_fd_, tag_of(Tag::epoll, 0, 0));
    epoll_watched_ = true;
  }
  ring_->submit(static_cast<uint64_t>(limit_ms) * 1000);
  commands_.run_all();
  if (stopping_) return false;
  woke_us_ = now_us_ = mono_us();
  take_completions();
  bool any = false;
  if (!epoll_watched_) {
    any = take_ready(0) > 0;
    ring_->submit();
  }
  take_frames();
  return any;
}

/** Takes the packets that came while this thread stood still. Timers conclude from the absence of packets: a key whose
 * packets wait in the socket would end, and end again when they are read. False when the thread is to stop. */
bool Worker::catch_up() {
  for (int n = 0; n < kCatchUp && take_packets(0); ++n) continue;
  return !stopping_;
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
  realtime_ = options_.realtime && priority_.take(now_us_);
  running_ = true;
  running_.notify_one();
  wheel_.start(woke_us_);
  wakes_us_ = woke_us_;
  for (;;) {
    commands_.run_all();
    if (stopping_) break;
    now_us_ = mono_us();
    priority_.look(now_us_);
    if (now_us_ > std::min(woke_us_, wakes_us_) + kStoodUs && !catch_up()) break;
    wheel_.advance(now_us_);
    if (ring_) ring_->submit();
    pause();
    const uint64_t before = counters_.packets_received, last_us = woke_us_;
    watch_frames(!frames_flow_);
    const int limit_ms = commands_.empty() && !frames_flow_ ? wheel_.wait_ms(now_us_, 1000) : 0;
    wakes_us_ = now_us_ + static_cast<uint64_t>(limit_ms) * 1000;
    take_packets(limit_ms);
    if (stopping_) break;
    ++counters_.wakeups;
    const double span = static_cast<double>(std::max<uint64_t>(woke_us_ - last_us, 1));
    const double rate = static_cast<double>(counters_.packets_received - before) / span;
    packets_per_us_ += (rate - packets_per_us_) / 16;
  }
  packet_ring_.reset();
  ring_.reset();
}

}  // namespace media
