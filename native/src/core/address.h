// IP addresses and networks of peers, compared by value.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace media {

/** An IPv4 or IPv6 address with a port. A zero family means "none". */
struct Address {
  uint8_t family = 0;  // 0, 4 or 6
  uint16_t port = 0;   // host byte order
  uint8_t ip[16] = {};

  /** Parses an IP literal. False when `text` is not one. */
  static bool parse(const std::string& text, uint16_t port, Address& out);
  static Address from(const sockaddr* sa);

  socklen_t to(sockaddr_in6& out) const;
  std::string text() const;
  bool known() const { return family != 0; }
  bool same_ip(const Address& o) const { return family == o.family && std::memcmp(ip, o.ip, 16) == 0; }
  bool operator==(const Address& o) const { return port == o.port && same_ip(o); }
};

/** A network such as 192.0.2.0/24. */
struct Network {
  Address base;
  int bits = 0;

  static bool parse(const std::string& text, Network& out);
  bool holds(const Address& a) const;
};

inline bool any_holds(const std::vector<Network>& nets, const Address& a) {
  for (const auto& n : nets)
    if (n.holds(a)) return true;
  return false;
}

}  // namespace media
