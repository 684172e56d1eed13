// What the kernel alone takes for the packets of idle legs: prints the CPU microseconds of one send on a connected
// socket, with as many sockets as legs, and receivers that do not read.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

int main(int argc, char** argv) {
  const size_t legs = argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : 1000, receivers = 16, turns = 100;
  std::vector<sockaddr_in> at(receivers);
  for (auto& a : at) {
    const int fd = socket(AF_INET, SOCK_DGRAM, 0), room = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof a;
    if (bind(fd, reinterpret_cast<sockaddr*>(&a), size) != 0) return 1;
    getsockname(fd, reinterpret_cast<sockaddr*>(&a), &size);
  }
  std::vector<int> sockets(legs);
  for (size_t i = 0; i < legs; ++i) {
    sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
    if (connect(sockets[i], reinterpret_cast<sockaddr*>(&at[i % receivers]), sizeof at[0]) != 0) return 1;
  }
  const char packet[172] = {};
  size_t sent = 0;
  const double before = cpu_seconds();
  for (size_t turn = 0; turn < turns; ++turn) {
    for (size_t i = turn % 4; i < legs; i += 4, ++sent)
      if (send(sockets[i], packet, sizeof packet, MSG_DONTWAIT) < 0) return 1;
    usleep(5000);
  }
  std::printf("%.3f\n", (cpu_seconds() - before) * 1e6 / static_cast<double>(sent));
}
