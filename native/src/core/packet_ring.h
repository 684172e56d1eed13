// Receives the packets of a packet thread as frames of a ring that the kernel fills (packet(7), TPACKET_V2): reading a
// thousand streams takes no system call. The ring sees packets in addition to the sockets, which stay as they are.
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
  /** A frame is an odd number of cache lines (as Uring's buffers). The ring holds 160 ms of 100,000 packets a second.
   * */
  static constexpr size_t kFrameSize = 11 * 64, kFramesPerBlock = 372, kBlocks = 44;
  static constexpr size_t kFrames = kFramesPerBlock * kBlocks;
  /** The longest IP packet that the ring carries: 60 ms of G.711. Behind it a frame has the room that SRTP needs. */
  static constexpr size_t kMaxPacketSize = kFrameSize - 80 - kTailRoom;

  /** Returns a descriptor for `open`, which then needs fewer rights. It hears nothing. -1 when this process may not
   * have one (CAP_NET_RAW). */
  static int reserve();
  /** Takes over the descriptor. Null when the kernel refuses. `own`: the address that packets go to, or 0.0.0.0. Waits
   * for the kernel. */
  static std::unique_ptr<PacketRing> open(int reserved, const Address& own, const PortClass& ports);
  ~PacketRing();
  PacketRing(const PacketRing&) = delete;
  PacketRing& operator=(const PacketRing&) = delete;

  /** A descriptor that is readable while a frame waits. */
  int fd() const { return fd_; }

  struct Frame {
    uint8_t* packet;  // from its IP header on, ours to write, with kTailRoom behind it; valid until give_back
    size_t size;
    bool carried;   // false: this is the head alone; the socket has a packet that the ring cannot carry
    bool verified;  // the UDP checksum is right
    int interface;
  };
  bool next(Frame& out);
  /** Gives the frames that next() took since the last call back to the kernel. */
  void give_back();
  /** The port of the frame `n` after the next one, so that its stream can be fetched ahead. 0 when none
   * waits there. Its lines of memory must have been asked for by fetch(n). */
  uint16_t ahead(unsigned n) const;
  void fetch(unsigned n) const;
  /** The number of frames lost for want of room since the last call. */
  unsigned take_drops();

  const uint8_t* begin() const { return frames_; }
  const uint8_t* end() const { return frames_ + kBlocks * kBlockSize; }

  // A muted socket drops the packets that the ring can carry, and no others.
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
  unsigned head_ = 0, taken_ = 0;  // the next frame, and how many before it were taken
};

}  // namespace media
