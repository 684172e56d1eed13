#include "ports.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <random>

namespace media {

namespace {
constexpr uint16_t kFirstUnprivileged = 1024;
constexpr uint64_t kQuietUs = 2'000'000;
}  // namespace

PortPool::PortPool(const Address& bind, uint16_t first, uint16_t last, uint64_t quarantine_us, const Address& second,
                   unsigned classes)
    : bind_(bind),
      second_(second),
      quarantine_us_(quarantine_us),
      system_chooses_(last == 0),
      first_(system_chooses_ ? kFirstUnprivileged : first),
      last_(system_chooses_ ? 0xffff : last),
      free_(std::max(1u, classes)) {
  std::vector<uint16_t> ports;
  for (uint32_t p = first + (first & 1u); !system_chooses_ && p + 1 <= last; p += 2)
    ports.push_back(static_cast<uint16_t>(p));
  // Shuffle the ports, so that a stranger cannot guess the next call's port from the last one.
  std::shuffle(ports.begin(), ports.end(), std::mt19937(std::random_device{}()));
  for (const uint16_t port : ports) free_[port / 2u % free_.size()].push_back(port);
  total_ = ports.size();
}

int PortPool::bind_one(Address at, uint16_t port) {
  const int fd = socket(at.family == 4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (at.family == 6) {
    const int one = 1;
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
  }
  // Room for about 150 packets: enough for a stall of the machine, and little memory for a flood to fill.
  const int room = 128 * 1024;
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  const int expedited = 0xb8;  // DSCP EF, RFC 4594 §4.1
  setsockopt(fd, at.family == 4 ? IPPROTO_IP : IPPROTO_IPV6, at.family == 4 ? IP_TOS : IPV6_TCLASS, &expedited,
             sizeof expedited);
  at.port = port;
  sockaddr_in6 sa;
  const socklen_t n = at.to(sa);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&sa), n) != 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

bool PortPool::bind_pair(Address at, uint16_t port, PortPair& out) {
  PortPair pair;
  pair.family = at.family;
  pair.rtp_fd = bind_one(at, port);
  if (pair.rtp_fd < 0) return false;
  pair.rtcp_fd = bind_one(at, static_cast<uint16_t>(port + 1));
  if (pair.rtcp_fd < 0) {
    ::close(pair.rtp_fd);
    return false;
  }
  pair.rtp_port = port;
  pair.rtcp_port = static_cast<uint16_t>(port + 1);
  out = pair;
  return true;
}

void PortPool::wake_rested(uint64_t now_us) {
  while (!resting_.empty() && resting_.front().until_us <= now_us) {
    Resting r = resting_.front();
    resting_.pop_front();
    // Without sockets nothing has observed the pair, so it does not count as quiet.
    const bool quiet = r.pair.rtp_fd >= 0 && !heard(r.pair);
    if (quiet || r.most_us <= now_us) {
      close_pair(r.pair);
      free_[r.pair.rtp_port / 2u % free_.size()].push_back(r.pair.rtp_port);
      continue;
    }
    if (r.pair.rtp_fd < 0) listen(r.pair);
    // Each appended pair waits for the same time, so the list stays in order.
    r.until_us = now_us + std::min(kQuietUs, quarantine_us_);
    resting_.push_back(r);
  }
}

PortPool::~PortPool() {
  for (const Resting& r : resting_) close_pair(r.pair);
}

void PortPool::listen(PortPair& pair) const {
  PortPair bound;
  if (bind_pair(bind_address(pair.family), pair.rtp_port, bound)) pair = bound;
}

void PortPool::close_pair(const PortPair& pair) {
  for (const int fd : {pair.rtp_fd, pair.rtcp_fd})
    if (fd >= 0) ::close(fd);
}

/** Reports whether a packet has arrived since the last call. Drops the packets. */
bool PortPool::heard(const PortPair& pair) {
  bool any = false;
  for (const int fd : {pair.rtp_fd, pair.rtcp_fd}) {
    char byte;
    constexpr int kMost = 1000;
    for (int taken = 0; taken < kMost && recv(fd, &byte, 1, MSG_DONTWAIT | MSG_TRUNC) >= 0; ++taken) any = true;
  }
  return any;
}

bool PortPool::open_any(const Address& at, PortPair& out, unsigned index) {
  constexpr int kTries = 64;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const int probe = bind_one(at, 0);
    if (probe < 0) return false;
    sockaddr_in6 sa;
    socklen_t n = sizeof sa;
    getsockname(probe, reinterpret_cast<sockaddr*>(&sa), &n);
    const uint16_t port = Address::from(reinterpret_cast<sockaddr*>(&sa)).port & 0xfffe;
    ::close(probe);
    const bool good = port_class(index).holds(port) || (attempt > kTries / 2 && port >= first_);
    if (good && bind_pair(at, port, out)) return true;
  }
  return false;
}

bool PortPool::open(PortPair& out, uint64_t now_us, uint8_t family, unsigned index) {
  const Address& at = bind_address(family);
  std::lock_guard lock(mutex_);
  if (system_chooses_) {
    const bool opened = open_any(at, out, index);
    in_use_ += opened;
    return opened;
  }
  wake_rested(now_us);
  for (size_t i = 0; i < free_.size(); ++i) {
    auto& free = free_[(index + i) % free_.size()];
    for (size_t tries = free.size(); tries > 0; --tries) {
      const uint16_t port = free.front();
      free.pop_front();
      if (bind_pair(at, port, out)) {
        ++in_use_;
        return true;
      }
      free.push_back(port);
    }
  }
  return false;
}

void PortPool::give_back(uint16_t rtp_port, uint64_t now_us, uint8_t family) {
  PortPair pair;
  pair.rtp_port = rtp_port;
  pair.rtcp_port = static_cast<uint16_t>(rtp_port + 1);
  pair.family = family;
  if (!system_chooses_) listen(pair);
  std::lock_guard lock(mutex_);
  --in_use_;
  if (!system_chooses_)
    resting_.push_back({now_us + std::min(kQuietUs, quarantine_us_), now_us + quarantine_us_, pair});
}

PortPool::Counts PortPool::counts(uint64_t now_us) {
  std::lock_guard lock(mutex_);
  wake_rested(now_us);
  return {in_use_, resting_.size(), total_};
}

}  // namespace media
