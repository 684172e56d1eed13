// Received packets of a packet thread as frames of a ring that the kernel fills (packet(7), TPACKET_V2): a thousand
// streams are read without one system call. It sees what comes in beside the sockets, which stay as they are.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ports.h"
#include "stream.h"

struct tpacket2_hdr;

namespace media {

class PacketRing {
 public:
  /** Frames of an odd number of cache lines (as Uring's buffers), 160 ms of 100,000 packets a second. */
  static constexpr size_t kFrameSize = 11 * 64, kFramesPerBlock = 372, kBlocks = 44;
  static constexpr size_t kFrames = kFramesPerBlock * kBlocks;
  /** The longest IP packet that it carries: 60 ms of G.711. Behind it a frame has the room that SRTP wants. */
  static constexpr size_t kMaxPacketSize = kFrameSize - 80 - kTailRoom;

  /** A descriptor that one can be opened on later, with fewer rights; it hears nothing. -1 where this process may not
   * have one (CAP_NET_RAW). */
  static int reserve();
  /** Takes the descriptor. Null when the kernel refuses. `own`: the address to which the packets go, or 0.0.0.0. Waits
   * for the kernel. */
  static std::unique_ptr<PacketRing> open(int reserved, const Address& own, const PortClass& ports);
  ~PacketRing();
  PacketRing(const PacketRing&) = delete;
  PacketRing& operator=(const PacketRing&) = delete;

  /** Readable while a frame waits. */
  int fd() const { return fd_; }

  struct Frame {
    uint8_t* packet;  // from its IP header on, ours to write, with kTailRoom behind it; valid until give_back
    size_t size;
    bool carried;   // else its head alone, to tell that the socket has one that the ring cannot carry
    bool verified;  // the sum of UDP
    int interface;
  };
  bool next(Frame& out);
  /** Frames taken by next() since the last call are the kernel's again. */
  void give_back();
  /** For what can be fetched ahead: the port to which the frame goes that comes `n` after the next one; 0 when none
   * waits there. Its lines of memory must have been asked for by fetch(n). */
  uint16_t ahead(unsigned n) const;
  void fetch(unsigned n) const;
  /** Frames lost for want of room since the last call. */
  unsigned take_drops();

  const uint8_t* begin() const { return frames_; }
  const uint8_t* end() const { return frames_ + kBlocks * kBlockSize; }

  // A connected socket whose packets the ring carries lets go of those that it can carry, and of no others.
  static bool mute(int socket);
  static void unmute(int socket);

 private:
  static constexpr size_t kBlockSize = 256 * 1024;
  static_assert(kFramesPerBlock == kBlockSize / kFrameSize);

  PacketRing() = default;
  uint8_t* frame(unsigned n) const {
    unsigned at = head_ + n;
    if (at >= kFrames) at -= kFrames;
    return frames_ + at / kFramesPerBlock * kBlockSize + at % kFramesPerBlock * kFrameSize;
  }

  int fd_ = -1;
  uint8_t* frames_ = nullptr;
  unsigned head_ = 0, taken_ = 0;  // head_: the next one; taken_: so many before it
};

}  // namespace media
