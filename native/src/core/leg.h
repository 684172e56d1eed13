// A stream and its sockets on a packet thread. A leg moves its RTP socket between epoll, io_uring and the packet ring;
// worker_turns.cc reads the sockets.
//
// Thread: the packet thread of its worker, from construction to destruction.
// Memory: each sent packet touches the first cache line, each received packet the second. Only packets from epoll, and
// sockets that move, touch the rest.
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
  /** Connects the RTP socket to the peer, which makes sending and receiving a tenth cheaper. A second socket on the
   * same port, the guard, receives strangers' packets. They are still counted, and cause no ICMP error that would
   * reveal the leg. */
  void settled(const Address& peer) override;
  void look_after(uint64_t now_us) override;

  /** Counts a packet of the RTP socket. Moves a flooded socket to epoll, where it costs little, and back afterwards. */
  void count(uint64_t now_us);
  /** Moves the socket to the rings once it holds no packet from before the connect. Such packets may come from anyone,
   * and io_uring does not report their sender. */
  void look_whether_pure();
  /** Returns the RTP socket to epoll. */
  void to_epoll();
  /** Handles the end of the ring's multishot receive. */
  void receive_ended(uint64_t now_us);

  // The packet ring. A stream enters the ring after the ring and the socket have delivered the same packets for a
  // while. A flow that is redirected or filtered on its way to the socket therefore never enters it.

  /** Notes a packet from the socket before it is decrypted. False when the packet ring has delivered it already. */
  bool note_delivered(const uint8_t* packet, size_t n);
  /** Notes a frame from the packet ring. False when the socket delivers this packet. */
  bool note_frame(const uint8_t* packet, int interface, uint64_t now_us);
  /** Reads the socket at once, because it holds a packet of this stream that the packet ring cannot carry. That packet
   * precedes the next frame. */
  void note_uncarried();
  /** Moves the stream to the packet ring or back. Runs at the end of a turn, when the ring is empty. Entering requires
   * that the socket has delivered the ring's last packet, so that no packet is lost or taken twice. */
  void enter_or_leave_ring(uint64_t now_us);

  /** Whether the packet ring receives this stream. `leaving` lasts until the socket delivers its first packet, which
   * the ring may have delivered too. */
  enum class OnRing : uint8_t { no, yes, leaving };

  Worker& worker;
  uint64_t send_tag = 0;
  int place = -1, guard_fd = -1;
  Address connected;

  alignas(64) uint64_t second_us = 0;
  uint64_t frame_us = 0;
  uint32_t in_second = 0, socket_mark = 0;
  Passage passage;
  OnRing on_ring = OnRing::no;
  bool flooded = false;
  bool mixed = false;                // the RTP socket may hold packets from before it was connected
  bool listening = true;             // epoll or io_uring waits for the RTP socket
  uint8_t shown = 0, delivered = 0;  // packets from the packet ring and from the socket, counted up to kProof
  Address from_ring;                 // the sender of packets that arrive without an address
  PortPair sockets;
  uint64_t uncarried_us = 0;

  Address own;
  Socket rtp{this, Which::rtp}, rtcp{this, Which::rtcp}, guard{this, Which::guard};
  sockaddr_in6 last_from{};
  Address last_address;
  std::unique_ptr<Stream> stream;

 private:
  /** The destination of the last datagram, also in the kernel's format. */
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
  /** Attaches the connected socket to io_uring. A connected socket needs no sender address for each packet. */
  void to_ring();
  void listen();
  /** Stops waiting for the socket. Otherwise a muted socket would wake the thread for each packet that it sends. */
  void stop_listening(uint64_t now_us);
  void read_leftover(uint64_t now_us);
  uint64_t receive_tag() const;
  void show_in_packet_ring();
  void leave_packet_ring();
  bool away(uint64_t now_us) const;
  void back_to_socket();
  void unmute();

  Destination rtp_destination_, rtcp_destination_;
};

}  // namespace media
