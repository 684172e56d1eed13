// Packets sent through io_uring, as the other end of the socket receives them.
#include "../src/core/uring.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "check.h"

using namespace media;

namespace {

/** Reuses the memory of sent packets at once, and fills the queue at every possible moment in between. */
void copies() {
  const auto ring = Uring::open(4);
  check::ok(true, std::string("io_uring is ") + (ring ? "allowed" : "refused"));
  int ends[2];
  if (!ring || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends) != 0) return;
  const int quiet = eventfd(0, 0);
  ring->attach(0, ends[0]);
  int right = 0;
  constexpr int kRounds = 256, kPackets = 8;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < round; ++i) ring->poll_once(quiet, 1);
    uint8_t packet[200];
    for (int i = 0; i < kPackets; ++i) {
      std::memset(packet, round + i, sizeof packet);
      ring->send(0, packet, sizeof packet, 2);
    }
    std::memset(packet, 0, sizeof packet);
    ring->submit();
    uint8_t heard[256];
    for (int i = 0; i < kPackets; ++i) {
      std::memset(packet, round + i, sizeof packet);
      right += recv(ends[1], heard, sizeof heard, 0) == sizeof packet && std::memcmp(heard, packet, sizeof packet) == 0;
    }
    ring->cancel(1);
    Uring::Completion c;
    while (ring->next(c)) {
    }
  }
  check::equal(right, kRounds * kPackets, "every packet is sent as it was when send was called");
  ::close(quiet);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace

void uring_tests() {
  copies();
}
