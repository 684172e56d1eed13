// Receives the packets of a packet thread as frames of a ring that the kernel fills (packet(7), TPACKET_V2). Reading a
// thousand streams takes no system call. The ring gets copies of the packets: the sockets still receive them.
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
  /** A frame is an odd number of cache lines, as are Uring's buffers. The ring holds 160 ms of 100,000 packets/s. */
  static constexpr size_t kFrameSize = 11 * 64, kFramesPerBlock = 372, kBlocks = 44;
  static constexpr size_t kFrames = kFramesPerBlock * kBlocks;
  /** The longest IP packet that the ring carries: 60 ms of G.711. The rest of the frame is room for SRTP. */
  static constexpr size_t kMaxPacketSize = kFrameSize - 80 - kTailRoom;

  /** Opens a descriptor for `open` while the process has CAP_NET_RAW; `open` itself does not need it. The descriptor
   * receives nothing yet. Returns -1 without the capability. */
  static int reserve();
  /** Opens the ring and takes ownership of the descriptor. `own` is the destination address of the packets, or 0.0.0.0.
   * Null when the kernel refuses. Blocks until the kernel is done. */
  static std::unique_ptr<PacketRing> open(int reserved, const Address& own, const PortClass& ports);
  ~PacketRing();
  PacketRing(const PacketRing&) = delete;
  PacketRing& operator=(const PacketRing&) = delete;

  /** Returns a descriptor that is readable while a frame waits. */
  int fd() const { return fd_; }

  struct Frame {
    uint8_t* packet;  // the IP header; writable, with kTailRoom after the packet, until give_back
    size_t size;
    bool carried;   // false: only the header; the ring cannot carry this packet, so the socket delivers it
    bool verified;  // the UDP checksum is known to be right
    int interface;
  };
  bool next(Frame& out);
  /** Returns to the kernel the frames that next() has taken since the last call. */
  void give_back();
  /** Returns the port of the frame `n` places after the next one, so that the caller can prefetch its stream. Returns 0
   * when no frame waits there. Call fetch(n) some time before, or the read stalls. */
  uint16_t ahead(unsigned n) const;
  void fetch(unsigned n) const;
  /** Returns the number of frames lost since the last call because the ring was full. */
  unsigned take_drops();

  const uint8_t* begin() const { return frames_; }
  const uint8_t* end() const { return frames_ + kBlocks * kBlockSize; }

  // A muted socket drops exactly the packets that the ring can carry.
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
  unsigned head_ = 0, taken_ = 0;  // the next frame, and the number of taken frames before it
};

}  // namespace media
