#include "address.h"

#include <arpa/inet.h>

#include <cstdlib>

namespace media {

bool Address::parse(const std::string& text, uint16_t port, Address& out) {
  Address a;
  a.port = port;
  if (inet_pton(AF_INET, text.c_str(), a.ip) == 1) {
    a.family = 4;
  } else if (inet_pton(AF_INET6, text.c_str(), a.ip) == 1) {
    a.family = 6;
  } else {
    return false;
  }
  out = a;
  return true;
}

Address Address::from(const sockaddr* sa) {
  Address a;
  if (sa->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(sa);
    a.family = 4;
    a.port = ntohs(v4->sin_port);
    std::memcpy(a.ip, &v4->sin_addr, 4);
  } else if (sa->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(sa);
    a.family = 6;
    a.port = ntohs(v6->sin6_port);
    std::memcpy(a.ip, &v6->sin6_addr, 16);
  }
  return a;
}

socklen_t Address::to(sockaddr_in6& out) const {
  std::memset(&out, 0, sizeof out);
  if (family == 4) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&out);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    std::memcpy(&v4->sin_addr, ip, 4);
    return sizeof(sockaddr_in);
  }
  out.sin6_family = AF_INET6;
  out.sin6_port = htons(port);
  std::memcpy(&out.sin6_addr, ip, 16);
  return sizeof(sockaddr_in6);
}

std::string Address::text() const {
  char buf[INET6_ADDRSTRLEN] = {};
  if (!known()) return "";
  inet_ntop(family == 4 ? AF_INET : AF_INET6, ip, buf, sizeof buf);
  return buf;
}

bool Network::parse(const std::string& text, Network& out) {
  const auto slash = text.find('/');
  Network n;
  if (!Address::parse(text.substr(0, slash), 0, n.base)) return false;
  const int width = n.base.family == 4 ? 32 : 128;
  n.bits = slash == std::string::npos ? width : std::atoi(text.c_str() + slash + 1);
  if (n.bits < 0 || n.bits > width) return false;
  out = n;
  return true;
}

bool Network::holds(const Address& a) const {
  if (a.family != base.family) return false;
  const int whole = bits / 8, rest = bits % 8;
  if (std::memcmp(a.ip, base.ip, static_cast<size_t>(whole)) != 0) return false;
  if (rest == 0) return true;
  const uint8_t mask = static_cast<uint8_t>(0xff << (8 - rest));
  return (a.ip[whole] & mask) == (base.ip[whole] & mask);
}

}  // namespace media
