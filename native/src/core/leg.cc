#include "leg.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cstring>

#include "bytes.h"
#include "datagram.h"
#include "ring_tag.h"

namespace media {

namespace {
/** Packets per second that count as a flood; no negotiated stream reaches this rate. The thread reads a flooded socket
 * once per wake-up, and the kernel's queue drops the rest. */
constexpr uint32_t kFlood = 1000;
/** A stream may move to the packet ring after both the ring and the socket have delivered this many packets. */
constexpr uint8_t kProof = 8;
/** A stream returns to its socket after this long without a frame, because its packets may take another path now. */
constexpr uint64_t kAwayUs = 500'000;
/** After a packet that the packet ring cannot carry, a stream stays on its socket for this long. */
constexpr uint64_t kUncarriedUs = 1'000'000;
/** The most packets to drain from a muted socket at once. */
constexpr int kLeftover = 64;
/** The receive buffer of the guard socket, in bytes. */
constexpr int kGuardBuffer = 16 * 1024;

/** Identifies a packet within its stream by its sequence number and the lower half of its timestamp. */
uint32_t mark_of(const uint8_t* packet) {
  return static_cast<uint32_t>(get16(packet + 2)) << 16 | get16(packet + 6);
}
}  // namespace

Worker::Leg::Leg(PortPair pair, const Address& bind, Worker& on) : worker(on), sockets(pair), own(bind) {
  own.port = pair.rtp_port;
}

Worker::Leg::~Leg() {
  dissolve();
}

// The connected socket and its guard

void Worker::Leg::settled(const Address& peer) {
  dissolve();
  if (!peer.known()) return;
  const int fd = socket(own.family == 4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  if (!connect_and_guard(fd, peer)) {
    ::close(fd);
    return;
  }
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kGuardBuffer, sizeof kGuardBuffer);
  guard_fd = fd;
  connected = from_ring = peer;
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.ptr = &guard;
  epoll_ctl(worker.epoll_fd_, EPOLL_CTL_ADD, fd, &e);
  mixed = true;
}

/** Connects the RTP socket to the peer and binds `fd` to the same port. False leaves the RTP socket unconnected. */
bool Worker::Leg::connect_and_guard(int fd, const Address& peer) {
  const int one = 1, zero = 0;
  sockaddr_in6 mine, to;
  const socklen_t mine_size = own.to(mine), to_size = peer.to(to);
  // Allow address reuse only while binding: afterwards no other socket can bind the port.
  setsockopt(sockets.rtp_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (own.family == 6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
  // Connect before binding the guard. Otherwise a packet of the peer could reach the guard and overtake the packets
  // that wait in the RTP socket.
  const bool joined = ::connect(sockets.rtp_fd, reinterpret_cast<sockaddr*>(&to), to_size) == 0;
  const bool bound = joined && ::bind(fd, reinterpret_cast<sockaddr*>(&mine), mine_size) == 0;
  setsockopt(sockets.rtp_fd, SOL_SOCKET, SO_REUSEADDR, &zero, sizeof zero);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &zero, sizeof zero);
  if (joined && !bound) disconnect();
  return bound;
}

void Worker::Leg::dissolve() {
  if (guard_fd < 0) return;
  to_epoll();
  disconnect();
  ::close(guard_fd);
  guard_fd = -1;
  mixed = false;
  connected = Address{};
}

void Worker::Leg::disconnect() {
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  ::connect(sockets.rtp_fd, &none, sizeof none);
}

void Worker::Leg::look_whether_pure() {
  char first;
  if (::recv(sockets.rtp_fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN) return;
  mixed = false;
  if (!flooded) to_rings();
}

// Sending

bool Worker::Leg::send_rtp(const uint8_t* p, size_t n, const Address& to) {
  if (place >= 0 && to == connected && n <= Uring::kBufferSize) {
    worker.ring_->send(static_cast<uint32_t>(place), p, n, send_tag);
    return true;
  }
  if (guard_fd >= 0 && to == connected)
    return ::send(sockets.rtp_fd, p, n, MSG_DONTWAIT) >= 0 ||
           (errno == ECONNREFUSED && ::send(sockets.rtp_fd, p, n, MSG_DONTWAIT) >= 0);
  return send(sockets.rtp_fd, p, n, to, rtp_destination_);
}

bool Worker::Leg::send_rtcp(const uint8_t* p, size_t n, const Address& to) {
  return send(sockets.rtcp_fd, p, n, to, rtcp_destination_);
}

bool Worker::Leg::send(int fd, const uint8_t* p, size_t n, const Address& to, Destination& cached) {
  if (!(cached.to == to)) {
    cached.to = to;
    cached.size = to.to(cached.sa);
  }
  const auto* sa = reinterpret_cast<const sockaddr*>(&cached.sa);
  if (::sendto(fd, p, n, MSG_DONTWAIT, sa, cached.size) >= 0) return true;
  // ECONNREFUSED reports the ICMP error of an earlier packet, once. The kernel did not send this packet, so retry.
  return errno == ECONNREFUSED && ::sendto(fd, p, n, MSG_DONTWAIT, sa, cached.size) >= 0;
}

// Between epoll and io_uring

void Worker::Leg::to_rings() {
  to_ring();
  show_in_packet_ring();
}

void Worker::Leg::to_ring() {
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
  send_tag = tag_of(Tag::send, at, p.turn);
  worker.ring_->receive(at, receive_tag());
}

void Worker::Leg::to_epoll() {
  leave_packet_ring();
  if (place >= 0) {
    const auto at = static_cast<uint32_t>(place);
    if (listening) worker.ring_->cancel(receive_tag());
    worker.ring_->attach(at, -1);
    worker.places_[at].leg = nullptr;
    worker.free_places_.push_back(at);
    place = -1;
    listening = false;
  }
  listen();
}

uint64_t Worker::Leg::receive_tag() const {
  const auto at = static_cast<uint32_t>(place);
  return tag_of(Tag::receive, at, worker.places_[at].turn);
}

void Worker::Leg::listen() {
  if (listening) return;
  listening = true;
  if (place >= 0) return worker.ring_->receive(static_cast<uint32_t>(place), receive_tag());
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.ptr = &rtp;
  epoll_ctl(worker.epoll_fd_, EPOLL_CTL_ADD, sockets.rtp_fd, &e);
}

void Worker::Leg::stop_listening(uint64_t now_us) {
  if (place >= 0) return worker.ring_->cancel(receive_tag());
  epoll_ctl(worker.epoll_fd_, EPOLL_CTL_DEL, sockets.rtp_fd, nullptr);
  receive_ended(now_us);
}

void Worker::Leg::receive_ended(uint64_t now_us) {
  listening = false;
  on_ring == OnRing::yes ? read_leftover(now_us) : listen();
}

void Worker::Leg::read_leftover(uint64_t now_us) {
  for (int i = 0; i < kLeftover && worker.read(rtp, now_us); ++i) continue;
}

void Worker::Leg::count(uint64_t now_us) {
  if (now_us - second_us > 1'000'000) {
    if (flooded && in_second < kFlood / 2) {
      flooded = false;
      if (guard_fd >= 0 && !mixed) to_rings();
    }
    second_us = now_us;
    in_second = 0;
  }
  if (++in_second == kFlood && !flooded) {
    flooded = true;
    to_epoll();
  }
}

// On the packet ring and off it

/** Requests the frames of exactly this flow from the packet ring. */
void Worker::Leg::show_in_packet_ring() {
  Shown* at = worker.shown_at(sockets.rtp_port);
  sockaddr_in mine{};
  socklen_t n = sizeof mine;
  if (!at || connected.family != 4) return;
  if (getsockname(sockets.rtp_fd, reinterpret_cast<sockaddr*>(&mine), &n) != 0) return;
  *at = Shown{this, stream.get(), 0, mine.sin_addr.s_addr, connected.port};
  std::memcpy(&at->peer_ip, connected.ip, 4);
  shown = delivered = 0;
  passage = Passage{};
}

void Worker::Leg::leave_packet_ring() {
  Shown* at = worker.shown_at(sockets.rtp_port);
  if (!at || at->leg != this) return;
  *at = Shown{};
  unmute();
  on_ring = OnRing::no;
}

bool Worker::Leg::note_delivered(const uint8_t* packet, size_t n) {
  const bool leaves = on_ring == OnRing::leaving;
  if (leaves) on_ring = OnRing::no;
  if (n + kDatagramHeader > PacketRing::kMaxPacketSize) return true;
  socket_mark = mark_of(packet);
  if (delivered < kProof) ++delivered;
  return !leaves || socket_mark != passage.last();
}

void Worker::Leg::note_uncarried() {
  uncarried_us = worker.now_us_;
  if (on_ring != OnRing::yes) return;
  worker.changing_.push_back(sockets.rtp_port);
  read_leftover(worker.now_us_);
}

bool Worker::Leg::note_frame(const uint8_t* packet, int interface, uint64_t now_us) {
  const uint32_t mark = mark_of(packet);
  switch (passage.see(interface, mark)) {
    case Passage::Seen::elsewhere:
      return false;
    case Passage::Seen::moved:
      back_to_socket();
      on_ring = OnRing::no;  // until the socket has delivered packets on the new path
      return false;
    case Passage::Seen::here:
      break;
  }
  if (on_ring != OnRing::no) {
    // The socket has also delivered the last packets that came before it was muted.
    const bool twice = mark == socket_mark;
    socket_mark = 0;
    frame_us = now_us;
    return !twice;
  }
  if (shown < kProof) ++shown;
  if (shown == kProof && delivered == kProof) worker.changing_.push_back(sockets.rtp_port);
  return false;
}

void Worker::Leg::enter_or_leave_ring(uint64_t now_us) {
  const bool fits = now_us - uncarried_us >= kUncarriedUs;
  if (on_ring == OnRing::yes && (!fits || away(now_us))) return back_to_socket();
  if (on_ring != OnRing::no || !fits || shown < kProof || delivered < kProof || passage.last() != socket_mark) return;
  if (!PacketRing::mute(sockets.rtp_fd)) return leave_packet_ring();
  on_ring = OnRing::yes;
  frame_us = now_us;
  worker.counters_.packet_ring_streams += 1;
  stop_listening(now_us);
}

void Worker::Leg::look_after(uint64_t now_us) {
  if (on_ring == OnRing::yes && away(now_us)) worker.changing_.push_back(sockets.rtp_port);
}

bool Worker::Leg::away(uint64_t now_us) const {
  return now_us - frame_us >= kAwayUs;
}

void Worker::Leg::back_to_socket() {
  unmute();
  listen();
}

void Worker::Leg::unmute() {
  shown = delivered = 0;
  if (on_ring != OnRing::yes) return;
  on_ring = OnRing::leaving;
  PacketRing::unmute(sockets.rtp_fd);
  worker.counters_.packet_ring_streams += -1;
}

}  // namespace media
