#include "packet_ring.h"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "bytes.h"
#include "datagram.h"

namespace media {

namespace {
// The kernel places the packet after its own header and 16 bytes; see packet(7) and tpacket_rcv in the kernel.
constexpr size_t kPacketAt = 80;
static_assert(TPACKET_ALIGN(TPACKET2_HDRLEN) + 16 == kPacketAt);
static_assert(PacketRing::kMaxPacketSize + kPacketAt + kTailRoom == PacketRing::kFrameSize);
constexpr uint32_t kWhole = 0xffff, kNothing = 0;

/** Builds a classic BPF program that checks a list of conditions (linux/Documentation/networking/filter.rst). */
class Conditions {
 public:
  void load(unsigned size, uint32_t at) { code_.push_back({uint16_t(BPF_LD | size | BPF_ABS), 0, 0, at}); }
  /** Loads from behind the IP header, whose length is in the first byte of the packet. */
  void load_behind_header(unsigned size, uint32_t at) {
    code_.push_back({uint16_t(BPF_LDX | BPF_B | BPF_MSH), 0, 0, 0});
    code_.push_back({uint16_t(BPF_LD | size | BPF_IND), 0, 0, at});
  }
  void compute(unsigned what, uint32_t by) { code_.push_back({uint16_t(BPF_ALU | what | BPF_K), 0, 0, by}); }
  void must(unsigned what, uint32_t value) { code_.push_back({uint16_t(BPF_JMP | what | BPF_K), 0, kOut, value}); }
  void must_not(unsigned what, uint32_t value) { code_.push_back({uint16_t(BPF_JMP | what | BPF_K), kOut, 0, value}); }

  /** Ends the program and attaches it to the socket. It returns `met` for packets that meet all conditions, and `other`
   * for all others. */
  bool apply(int socket, uint32_t met, uint32_t other) {
    for (size_t i = 0; i < code_.size(); ++i) {
      const auto out = static_cast<uint8_t>(code_.size() - i);
      if (code_[i].jt == kOut) code_[i].jt = out;
      if (code_[i].jf == kOut) code_[i].jf = out;
    }
    code_.push_back({BPF_RET | BPF_K, 0, 0, met});
    code_.push_back({BPF_RET | BPF_K, 0, 0, other});
    const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    return setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
  }

 private:
  static constexpr uint8_t kOut = 0xff;
  std::vector<sock_filter> code_;
};

// The ring carries whole packets without IP options that fit a frame. This rule exists twice: as a function of the IP
// header and as the filter of a muted socket.
constexpr uint8_t kNoOptions = 0x45;

bool carried(const uint8_t* ip) {
  return get16(ip + 2) <= PacketRing::kMaxPacketSize && ip[0] == kNoOptions && !(get16(ip + 6) & kFragment);
}
void carried(Conditions& c) {
  constexpr auto ip = static_cast<uint32_t>(SKF_NET_OFF);
  c.load(BPF_H, ip + 2);
  c.must_not(BPF_JGT, PacketRing::kMaxPacketSize);
  c.load(BPF_B, ip);
  c.must(BPF_JEQ, kNoOptions);
  c.load(BPF_H, ip + 6);
  c.must_not(BPF_JSET, kFragment);
}

bool attach_filter(int fd, const Address& own, const PortClass& ports) {
  Conditions c;
  c.load(BPF_H, static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_PROTOCOL));
  c.must(BPF_JEQ, ETH_P_IP);
  c.load(BPF_B, 9);
  c.must(BPF_JEQ, IPPROTO_UDP);
  c.load(BPF_H, 6);
  c.must_not(BPF_JSET, kLaterFragment);
  const uint32_t ip = get32(own.ip);
  if (ip != INADDR_ANY) {
    c.load(BPF_W, 16);
    c.must(BPF_JEQ, ip);
  }
  c.load_behind_header(BPF_H, 2);
  c.must_not(BPF_JSET, 1);
  c.must(BPF_JGE, ports.first);
  c.must_not(BPF_JGT, ports.last);
  if (ports.classes > 1) {
    c.compute(BPF_RSH, 1);
    c.compute(BPF_MOD, ports.classes);
    c.must(BPF_JEQ, ports.index);
  }
  c.load(BPF_W, static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_PKTTYPE));
  c.must(BPF_JEQ, PACKET_HOST);
  return c.apply(fd, kWhole, kNothing);
}

tpacket2_hdr* header(uint8_t* frame) {
  return reinterpret_cast<tpacket2_hdr*>(frame);
}
/** Prefetches a cache line for writing, so that a later write need not wait for the core that wrote it last. On x86 the
 * compiler's builtin prefetches only for reading. Processors without the instruction ignore it. */
void fetch_to_write(const uint8_t* at) {
#ifdef __x86_64__
  asm volatile("prefetchw %0" : : "m"(*at));
#else
  __builtin_prefetch(at, 1);
#endif
}
bool waits(uint8_t* frame) {
  return __atomic_load_n(&header(frame)->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER;
}
}  // namespace

int PacketRing::reserve() {
  // Protocol 0 receives nothing. open() binds the socket after it has set the filter, so no packet bypasses the filter.
  return socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

std::unique_ptr<PacketRing> PacketRing::open(int reserved, const Address& own, const PortClass& ports) {
  std::unique_ptr<PacketRing> ring(new PacketRing);
  const int fd = ring->fd_ = reserved;
  if (fd < 0 || !attach_filter(fd, own, ports)) return nullptr;
  // Version 2 delivers each packet at once. Version 3 delivers blocks, at least a millisecond late.
  const int version = TPACKET_V2;
  if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0) return nullptr;
  tpacket_req wanted{};
  wanted.tp_block_size = kBlockSize;
  wanted.tp_block_nr = kBlocks;
  wanted.tp_frame_size = kFrameSize;
  wanted.tp_frame_nr = kFrames;
  if (setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &wanted, sizeof wanted) != 0) return nullptr;
  void* frames = mmap(nullptr, kBlocks * kBlockSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (frames == MAP_FAILED) return nullptr;
  ring->frames_ = static_cast<uint8_t*>(frames);
  // Bind to all protocols although the filter passes only IPv4. Since Linux 6.15 the kernel runs a socket of a single
  // protocol after IP, which then copies the header of every packet of the machine. Ignore outgoing packets.
  const int on = 1;
  if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0) return nullptr;
  sockaddr_ll all{};
  all.sll_family = AF_PACKET;
  all.sll_protocol = htons(ETH_P_ALL);
  return ::bind(fd, reinterpret_cast<sockaddr*>(&all), sizeof all) == 0 ? std::move(ring) : nullptr;
}

PacketRing::~PacketRing() {
  if (frames_) munmap(frames_, kBlocks * kBlockSize);
  if (fd_ >= 0) ::close(fd_);
}

bool PacketRing::next(Frame& out) {
  uint8_t* at = frame(0);
  if (taken_ == kFrames || !waits(at)) return false;
  const tpacket2_hdr& h = *header(at);
  const auto& from = *reinterpret_cast<const sockaddr_ll*>(at + TPACKET_ALIGN(sizeof h));
  out.packet = at + kPacketAt;
  out.size = h.tp_net == kPacketAt ? std::min<size_t>(h.tp_snaplen, kMaxPacketSize) : 0;
  out.carried = out.size >= kDatagramHeader && carried(out.packet);
  out.verified = h.tp_status & (TP_STATUS_CSUM_VALID | TP_STATUS_CSUMNOTREADY);
  out.interface = from.sll_ifindex;
  head_ = head_ + 1 == kFrames ? 0 : head_ + 1;
  ++taken_;
  return true;
}

void PacketRing::give_back() {
  for (; taken_ > 0; --taken_) {
    const unsigned at = head_ >= taken_ ? head_ - taken_ : head_ + static_cast<unsigned>(kFrames) - taken_;
    uint8_t* frame = frames_ + at / kFramesPerBlock * kBlockSize + at % kFramesPerBlock * kFrameSize;
    __atomic_store_n(&header(frame)->tp_status, uint32_t{TP_STATUS_KERNEL}, __ATOMIC_RELEASE);
  }
}

uint16_t PacketRing::ahead(unsigned n) const {
  uint8_t* at = frame(n);
  return waits(at) ? get16(at + kPacketAt + 22) : 0;
}

void PacketRing::fetch(unsigned n) const {
  uint8_t* at = frame(n);
  fetch_to_write(at);
  fetch_to_write(at + 64);
  // The payload of 20 ms of G.711.
  for (size_t line = 128; line < kPacketAt + 200; line += 64) __builtin_prefetch(at + line);
}

unsigned PacketRing::take_drops() {
  tpacket_stats stats{};
  socklen_t n = sizeof stats;
  return getsockopt(fd_, SOL_PACKET, PACKET_STATISTICS, &stats, &n) == 0 ? stats.tp_drops : 0;
}

bool PacketRing::mute(int socket) {
  Conditions c;
  carried(c);
  return c.apply(socket, kNothing, kWhole);
}

void PacketRing::unmute(int socket) {
  const int unused = 0;
  setsockopt(socket, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused);
}

}  // namespace media
