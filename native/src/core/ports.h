// Pairs of ports: an even one for RTP, an odd one for RTCP. A pair is not reused while packets of its previous call may
// still arrive.
#pragma once
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "address.h"

namespace media {

struct PortPair {
  int rtp_fd = -1, rtcp_fd = -1;
  uint16_t rtp_port = 0, rtcp_port = 0;
  uint8_t family = 0;  // of the bound address
};

/**
 * The pairs of one packet thread: every `classes`-th pair of a range. A kernel filter can thus find a packet's thread
 * by its port.
 */
struct PortClass {
  uint16_t first = 0, last = 0;
  unsigned index = 0, classes = 1;

  bool holds(uint16_t rtp_port) const {
    return rtp_port >= first && rtp_port <= last && rtp_port % 2 == 0 && rtp_port / 2u % classes == index;
  }
};

/** The pool of pairs. The control thread takes pairs and packet threads return them. Handling a packet never locks. */
class PortPool {
 public:
  /** `second` is an address of the other family, or none. Both addresses share one range of ports. */
  PortPool(const Address& bind, uint16_t first, uint16_t last, uint64_t quarantine_us, const Address& second = {},
           unsigned classes = 1);
  ~PortPool();

  /**
   * Binds a pair at the address of a family. False when there is no such address, or all pairs are in use or resting.
   * Skips ports that other programs hold. Prefers pairs of the given class and falls back to other classes.
   */
  bool open(PortPair& out, uint64_t now_us, uint8_t family = 0, unsigned index = 0);
  /**
   * Quarantines a pair whose sockets are closed. It rests for two seconds, or longer while packets still arrive, up to
   * the whole quarantine. Many short calls therefore need few ports.
   */
  void give_back(uint16_t rtp_port, uint64_t now_us, uint8_t family = 0);

  const Address& bind_address(uint8_t family) const {
    return family != 0 && second_.family == family ? second_ : bind_;
  }

  PortClass port_class(unsigned index) const { return {first_, last_, index, static_cast<unsigned>(free_.size())}; }

  struct Counts {
    size_t in_use, quarantined, total;
  };
  Counts counts(uint64_t now_us);

 private:
  static bool bind_pair(Address at, uint16_t port, PortPair& out);
  static int bind_one(Address at, uint16_t port);
  void wake_rested(uint64_t now_us);
  bool open_any(const Address& at, PortPair& out, unsigned index);

  struct Resting {
    uint64_t until_us, most_us;
    PortPair pair;  // its sockets detect late packets; -1 when they could not be bound
  };
  void listen(PortPair& pair) const;
  static bool heard(const PortPair& pair);
  static void close_pair(const PortPair& pair);
  const Address bind_, second_;
  const uint64_t quarantine_us_;
  const bool system_chooses_;
  const uint16_t first_, last_;
  std::mutex mutex_;
  std::vector<std::deque<uint16_t>> free_;  // by class
  std::deque<Resting> resting_;
  size_t total_ = 0, in_use_ = 0;
};

}  // namespace media
