// A stream's sockets on its packet thread, and how they change between epoll, io_uring and the packet ring. Part of
// worker.cc's class.
#pragma once
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cstring>

#include "bytes.h"
#include "datagram.h"
#include "passage.h"
#include "worker.h"

namespace media {

/** What a completion of the ring says it belongs to: kind, place in the table of sockets, that place's turn. */
enum class Tag : uint8_t { receive = 1, send, epoll };

inline uint64_t tag_of(Tag what, uint32_t place, uint32_t turn) {
  return static_cast<uint64_t>(turn) << 32 | place << 4 | static_cast<uint32_t>(what);
}
inline Tag what_of(uint64_t tag) {
  return static_cast<Tag>(tag & 15);
}
inline uint32_t place_of(uint64_t tag) {
  return static_cast<uint32_t>(tag) >> 4;
}
inline uint32_t turn_of(uint64_t tag) {
  return static_cast<uint32_t>(tag >> 32);
}

/** Packets in a second that no negotiated stream brings: such a socket is read once a wake-up instead, and its queue in
 * the kernel drops the rest. */
constexpr uint32_t kFlood = 1000;

/** So many packets both the packet ring and the socket must have brought of a stream before the ring alone may. */
constexpr uint8_t kProof = 8;
/** Who brought none for so long is read by the socket again: perhaps its packets come another way now. */
constexpr uint64_t kAwayUs = 500'000;
/** Who brought one that the packet ring cannot carry stays with its socket for so long after it. */
constexpr uint64_t kUncarriedUs = 1'000'000;
/** So many packets are read at once from a socket that is not waited for any more. */
constexpr int kLeftover = 64;

/** Tells packets of one stream apart: sequence number, lower half of the timestamp. */
inline uint32_t mark_of(const uint8_t* packet) {
  return static_cast<uint32_t>(get16(packet + 2)) << 16 | get16(packet + 6);
}

/** A stream with its sockets. */
struct alignas(64) Worker::Leg final : Wire {
  // What each sent packet touches, in the first line of memory, and each received one, in the second.
  Worker& worker;
  uint64_t send_tag = 0;
  int place = -1, guard_fd = -1;
  Address connected;
  alignas(64) uint64_t second_us = 0;
  uint64_t frame_us = 0;
  uint32_t in_second = 0, socket_mark = 0;
  Passage passage;
  /** Whether the packet ring receives this stream. Leaving: until the socket has brought one, which it may again. */
  enum class Ride : uint8_t { no, yes, leaving } ride = Ride::no;
  bool flooded = false, mixed = false;
  bool listening = true;             // to the RTP socket, by epoll or by a place in the ring
  uint8_t shown = 0, delivered = 0;  // by the packet ring, by the socket; counted up to kProof
  Address from_ring;                 // of packets that come without their sender's address
  PortPair sockets;
  uint64_t uncarried_us = 0;

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
    connected = from_ring = peer;
    epoll_event e{};
    e.events = EPOLLIN;
    e.data.ptr = &guard;
    epoll_ctl(worker.epoll_fd_, EPOLL_CTL_ADD, fd, &e);
    mixed = true;
  }

  /** What came before the socket was connected may be of anybody, and the ring does not tell of whom: it begins when that
   * is read. */
  void look_whether_pure() {
    char first;
    if (::recv(sockets.rtp_fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN) return;
    mixed = false;
    if (!flooded) to_rings();
  }

  void dissolve() {
    if (guard_fd < 0) return;
    to_epoll();
    disconnect();
    ::close(guard_fd);
    guard_fd = -1;
    mixed = false;
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

  void to_rings() {
    to_ring();
    show_in_packet_ring();
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
    send_tag = tag_of(Tag::send, at, p.turn);
    worker.ring_->receive(at, receive_tag());
  }

  uint64_t receive_tag() const {
    const auto at = static_cast<uint32_t>(place);
    return tag_of(Tag::receive, at, worker.places_[at].turn);
  }

  void listen() {
    if (listening) return;
    listening = true;
    if (place >= 0) return worker.ring_->receive(static_cast<uint32_t>(place), receive_tag());
    epoll_event e{};
    e.events = EPOLLIN;
    e.data.ptr = &rtp;
    epoll_ctl(worker.epoll_fd_, EPOLL_CTL_ADD, sockets.rtp_fd, &e);
  }

  /** Each packet that is sent would wake in vain who waits for one to come. */
  void stop_listening(uint64_t now_us) {
    if (place >= 0) return worker.ring_->cancel(receive_tag());
    epoll_ctl(worker.epoll_fd_, EPOLL_CTL_DEL, sockets.rtp_fd, nullptr);
    receive_ended(now_us);
  }

  void receive_ended(uint64_t now_us) {
    listening = false;
    ride == Ride::yes ? read_leftover(now_us) : listen();
  }

  void read_leftover(uint64_t now_us) {
    for (int i = 0; i < kLeftover && worker.read(rtp, now_us); ++i) continue;
  }

  /** From now on the packet ring's frames of exactly this flow are looked at. They are taken from there when both have
   * brought the same for a while: a flow that is redirected, or filtered, on its way to the socket never gets so far. */
  void show_in_packet_ring() {
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

  void leave_packet_ring() {
    Shown* at = worker.shown_at(sockets.rtp_port);
    if (!at || at->leg != this) return;
    *at = Shown{};
    unmute();
    ride = Ride::no;
  }

  /** A packet that the socket has brought, as it came. False: the packet ring has brought the same one before. */
  bool note_delivered(const uint8_t* packet, size_t n) {
    const bool leaves = ride == Ride::leaving;
    if (leaves) ride = Ride::no;
    if (n + kDatagramHeader > PacketRing::kMaxPacketSize) return true;
    socket_mark = mark_of(packet);
    if (delivered < kProof) ++delivered;
    return !leaves || socket_mark != passage.last();
  }

  /** The socket has a packet of this stream that the packet ring cannot carry: it comes before the next frame. */
  void note_uncarried() {
    uncarried_us = worker.now_us_;
    if (ride != Ride::yes) return;
    worker.changing_.push_back(sockets.rtp_port);
    read_leftover(worker.now_us_);
  }

  /** False: the frame is to be left to the socket. */
  bool note_frame(const uint8_t* packet, int interface, uint64_t now_us) {
    const uint32_t mark = mark_of(packet);
    switch (passage.see(interface, mark)) {
      case Passage::Seen::elsewhere:
        return false;
      case Passage::Seen::moved:
        get_off();
        ride = Ride::no;  // that way the socket is to prove first
        return false;
      case Passage::Seen::here:
        break;
    }
    if (ride != Ride::no) {
      // The last ones before the socket let go came by both.
      const bool twice = mark == socket_mark;
      socket_mark = 0;
      frame_us = now_us;
      return !twice;
    }
    if (shown < kProof) ++shown;
    if (shown == kProof && delivered == kProof) worker.changing_.push_back(sockets.rtp_port);
    return false;
  }

  /** At the end of a turn, when the packet ring is empty. What it showed last the socket has brought as well, so nothing
   * of this stream is under way in between, and nothing is lost or taken twice. */
  void board_or_leave(uint64_t now_us) {
    const bool fits = now_us - uncarried_us >= kUncarriedUs;
    if (ride == Ride::yes && (!fits || away(now_us))) return get_off();
    if (ride != Ride::no || !fits || shown < kProof || delivered < kProof || passage.last() != socket_mark) return;
    if (!PacketRing::mute(sockets.rtp_fd)) return leave_packet_ring();
    ride = Ride::yes;
    frame_us = now_us;
    worker.counters_.packet_ring_streams += 1;
    stop_listening(now_us);
  }

  bool away(uint64_t now_us) const { return now_us - frame_us >= kAwayUs; }

  void get_off() {
    unmute();
    listen();
  }

  void unmute() {
    shown = delivered = 0;
    if (ride != Ride::yes) return;
    ride = Ride::leaving;
    PacketRing::unmute(sockets.rtp_fd);
    worker.counters_.packet_ring_streams += -1;
  }

  void look_after(uint64_t now_us) override {
    if (ride == Ride::yes && away(now_us)) worker.changing_.push_back(sockets.rtp_port);
  }

  void to_epoll() {
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

  /** Counts a packet of the RTP socket; a flood is moved to where it costs little, and back when it is over. */
  void count(uint64_t now_us) {
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

  bool send_rtp(const uint8_t* p, size_t n, const Address& to) override {
    if (place >= 0 && to == connected && n <= Uring::kBufferSize) {
      worker.ring_->send(static_cast<uint32_t>(place), p, n, send_tag);
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

}  // namespace media
