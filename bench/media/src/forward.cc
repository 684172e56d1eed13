// A minimal relay: epoll, recvfrom and sendto without inspecting packets. It is the floor for other engines. It follows
// the engine contract: --calls N --load-base P --load-socks K --engine-base E --legs-out FILE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

struct Side {
  int fd = -1;
  const Side* peer = nullptr;
  sockaddr_in to{};
};

int main(int argc, char** argv) {
  std::map<std::string, std::string> o;
  for (int i = 1; i + 1 < argc; i += 2) o[argv[i]] = argv[i + 1];
  const int calls = std::atoi(o["--calls"].c_str()), base = std::atoi(o["--load-base"].c_str()),
            socks = std::atoi(o["--load-socks"].c_str());
  int port = std::atoi(o["--engine-base"].c_str());
  FILE* legs = std::fopen(o["--legs-out"].c_str(), "w");
  if (calls < 1 || socks < 1 || !legs) {
    std::fprintf(stderr, "forward: --calls --load-base --load-socks --engine-base --legs-out\n");
    return 2;
  }
  std::vector<Side> sides(static_cast<size_t>(calls) * 2);
  const int ep = epoll_create1(0);
  for (size_t i = 0; i < sides.size(); ++i) {
    Side& s = sides[i];
    s.peer = &sides[i ^ 1];
    const int call = static_cast<int>(i / 2), load_port = base + 2 * ((i & 1 ? socks : 0) + call % socks);
    s.to.sin_family = AF_INET;
    s.to.sin_port = htons(static_cast<uint16_t>(load_port));
    s.to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s.fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    const int room = 4 << 20;
    setsockopt(s.fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    sockaddr_in own = s.to;
    do {
      own.sin_port = htons(static_cast<uint16_t>(port));
      port += 2;  // RTP ports are even
    } while (bind(s.fd, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0 && port < 65535);
    epoll_event e{};
    e.events = EPOLLIN;
    e.data.ptr = &s;
    epoll_ctl(ep, EPOLL_CTL_ADD, s.fd, &e);
    std::fprintf(legs, "%d,%d,%d,PCMU,0,,,\n", call, load_port, ntohs(own.sin_port));
  }
  std::fclose(legs);
  epoll_event in{};
  in.events = EPOLLIN;
  epoll_ctl(ep, EPOLL_CTL_ADD, 0, &in);
  std::printf("READY %d\n", getpid());
  std::fflush(stdout);
  epoll_event ready[512];
  unsigned char packet[2048];
  for (;;) {
    const int n = epoll_wait(ep, ready, 512, -1);
    for (int i = 0; i < n; ++i) {
      const auto* s = static_cast<const Side*>(ready[i].data.ptr);
      if (!s) {
        if (read(0, packet, sizeof packet) <= 0) return 0;
        continue;
      }
      sockaddr_in from;
      socklen_t size = sizeof from;
      const ssize_t got = recvfrom(s->fd, packet, sizeof packet, 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (got > 0)
        sendto(s->peer->fd, packet, static_cast<size_t>(got), 0, reinterpret_cast<const sockaddr*>(&s->peer->to),
               sizeof s->peer->to);
    }
  }
}
