// A stream with its sockets on its packet thread. A leg moves its RTP socket between epoll, io_uring and the packet
// ring; worker_turns.cc reads the sockets.
//
// Thread: the packet thread of its worker, from construction to destruction.
// Memory: the first line is what each sent packet touches, the second what each received packet touches. Everything
// behind them is touched when a socket changes over, or by packets that come through epoll.
#pragma once
#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "passage.h"
#include "worker.h"

namespace media {

struct alignas(64) Worker::Leg final : Wire {
  Leg(PortPair pair, const Address& bind, Worker& on);
  ~Leg() override;

  // Wire
  bool send_rtp(const uint8_t* p, size_t n, const Address& to) override;
  bool send_rtcp(const uint8_t* p, size_t n, const Address& to) override;
  /** Connects the RTP socket to the peer: sends and receives then cost a tenth less. A second socket on the same port,
   * the guard, meets strangers, so that they are still counted and get no ICMP error that would reveal the leg. */
  void settled(const Address& peer) override;
  void look_after(uint64_t now_us) override;

  /** Counts a packet of the RTP socket. Moves a flood to epoll, where it costs little, and back when it is over. */
  void count(uint64_t now_us);
  /** Packets from before the connect may be anybody's, and io_uring does not say whose. The rings begin when the socket
   * is empty. */
  void look_whether_pure();
  /** Returns the RTP socket to epoll. */
  void to_epoll();
  /** Handles the end of the ring's multishot receive. */
  void receive_ended(uint64_t now_us);

  // The packet ring. A stream boards it when the ring and the socket have brought the same packets for a while: a flow
  // that is redirected or filtered on its way to the socket never gets so far.

  /** Takes note of a packet from the socket, before it is decrypted. False when the packet ring has brought it before.
   * */
  bool note_delivered(const uint8_t* packet, size_t n);
  /** Takes note of a frame from the packet ring. False when the socket is to bring this packet. */
  bool note_frame(const uint8_t* packet, int interface, uint64_t now_us);
  /** The socket holds a packet of this stream that the packet ring cannot carry. It comes before the next frame. */
  void note_uncarried();
  /** Runs at the end of a turn, when the packet ring is empty. The socket has brought what the ring showed last, so
   * nothing of this stream is in between: the change neither loses a packet nor takes one twice. */
  void board_or_leave(uint64_t now_us);

  /** Whether the packet ring receives this stream. Leaving lasts until the socket brings its first packet, which the
   * ring may have brought as well. */
  enum class Ride : uint8_t { no, yes, leaving };

  Worker& worker;
  uint64_t send_tag = 0;
  int place = -1, guard_fd = -1;
  Address connected;

  alignas(64) uint64_t second_us = 0;
  uint64_t frame_us = 0;
  uint32_t in_second = 0, socket_mark = 0;
  Passage passage;
  Ride ride = Ride::no;
  bool flooded = false;
  bool mixed = false;                // the RTP socket may hold packets from before it was connected
  bool listening = true;             // to the RTP socket, by epoll or by a place in io_uring
  uint8_t shown = 0, delivered = 0;  // packets by the packet ring and by the socket; stop at kProof
  Address from_ring;                 // the sender of packets that come without an address
  PortPair sockets;
  uint64_t uncarried_us = 0;

  Address own;
  Socket rtp{this, Which::rtp}, rtcp{this, Which::rtcp}, guard{this, Which::guard};
  sockaddr_in6 last_from{};
  Address last_address;
  std::unique_ptr<Stream> stream;

 private:
  /** The address of the last datagram, as the kernel wants it. */
  struct Destination {
    Address to;
    sockaddr_in6 sa;
    socklen_t size = 0;
  };
  static bool send(int fd, const uint8_t* p, size_t n, const Address& to, Destination& cached);

  /** Undoes `settled`. */
  void dissolve();
  void disconnect();
  bool connect_and_guard(int fd, const Address& peer);
  void to_rings();
  /** Attaches the connected socket to io_uring, which then needs no sender's address with each packet. */
  void to_ring();
  void listen();
  /** Stops waiting for the socket: a muted socket would otherwise wake the thread for each packet that it sends. */
  void stop_listening(uint64_t now_us);
  void read_leftover(uint64_t now_us);
  uint64_t receive_tag() const;
  void show_in_packet_ring();
  void leave_packet_ring();
  bool away(uint64_t now_us) const;
  void get_off();
  void unmute();

  Destination rtp_destination_, rtcp_destination_;
};

}  // namespace media
