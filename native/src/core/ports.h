// Pairs of ports: even for RTP, odd for RTCP, none used again before it has rested.
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
};

/** Taken on the control thread, given back from packet threads; the lock is never taken for a packet. */
class PortPool {
 public:
  PortPool(const Address& bind, uint16_t first, uint16_t last, uint64_t quarantine_us);

  /** Binds a pair; false when all are in use or resting. Ports that others hold are passed over. */
  bool open(PortPair& out, uint64_t now_us);
  /** Puts the pair to rest; its sockets are closed already. */
  void give_back(uint16_t rtp_port, uint64_t now_us);

  const Address& bind_address() const { return bind_; }

  struct Counts {
    size_t in_use, quarantined, total;
  };
  Counts counts(uint64_t now_us);

 private:
  bool bind_pair(uint16_t port, PortPair& out) const;
  int bind_one(uint16_t port) const;
  void wake_rested(uint64_t now_us);

  struct Resting {
    uint64_t until_us;
    uint16_t port;
  };
  const Address bind_;
  const uint64_t quarantine_us_;
  const bool system_chooses_;
  std::mutex mutex_;
  std::deque<uint16_t> free_;
  std::deque<Resting> resting_;
  size_t total_ = 0, in_use_ = 0;
};

}  // namespace media
