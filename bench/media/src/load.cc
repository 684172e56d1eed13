// Load generator and meter. Sends N bidirectional streams of 50 packets per second each way, measures the CPU time that
// the engine spends on them, and prints one JSON object.
//   load --legs legs.csv --payloads DIR --warmup-ms 2000 --duration-ms 5000 --tick-us 1000 --pid PID[,PID]
// DIR/<CODEC>.pay holds frames of 20 ms, each after its length in two bytes.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <srtp2/srtp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "meter.h"

namespace {

using Bytes = std::vector<uint8_t>;

/** Packets that one system call sends. Cheap sending keeps the generator from limiting the measurement. */
struct Batch {
  static constexpr unsigned kRoom = 8;
  int fd = 0;
  unsigned count = 0;
  mmsghdr msgs[kRoom];
  iovec vecs[kRoom];
  uint8_t data[kRoom][1600];

  /** Returns the buffer for the next packet. `added` then adds it to the batch. */
  uint8_t* next() { return data[count]; }
  void added(size_t size, sockaddr_in& to) {
    vecs[count] = {data[count], size};
    msgs[count].msg_hdr = {&to, sizeof to, &vecs[count], 1, nullptr, 0, 0};
    if (++count == kRoom) flush();
  }
  void flush() {
    for (unsigned at = 0; at < count;) {
      const int n = sendmmsg(fd, msgs + at, count - at, MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      // Skip a refused packet. It counts as sent, so the receiving side reports it as lost.
      at += n > 0 ? static_cast<unsigned>(n) : 1;
    }
    count = 0;
  }
};

struct Leg {
  int call = 0, socket = -1, pt = 0;
  Batch* batch = nullptr;
  uint16_t engine_port = 0;
  std::string codec, crypto;
  srtp_t tx = nullptr, rx = nullptr;
  const std::vector<Bytes>* frames = nullptr;
  Leg* other = nullptr;
  sockaddr_in to{};
  uint16_t seq = 0;
  uint32_t ts = 0, ssrc = 0, clock_step = 160;
  size_t frame = 0;
  uint64_t next_us = 0, sent = 0, received = 0, bad = 0;
};

Bytes base64(const std::string& text) {
  Bytes out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    int v = c >= 'A' && c <= 'Z'   ? c - 'A'
            : c >= 'a' && c <= 'z' ? c - 'a' + 26
            : c >= '0' && c <= '9' ? c - '0' + 52
            : c == '+'             ? 62
            : c == '/'             ? 63
                                   : -1;
    if (v < 0) continue;
    bits = bits << 6 | static_cast<uint32_t>(v);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out.push_back(static_cast<uint8_t>(bits >> count));
    }
  }
  return out;
}

srtp_t session(const std::string& crypto, const std::string& key, bool sends) {
  srtp_policy_t p{};
  if (crypto.find("GCM") != std::string::npos) {
    srtp_crypto_policy_set_aes_gcm_128_16_auth(&p.rtp);
    srtp_crypto_policy_set_aes_gcm_128_16_auth(&p.rtcp);
  } else {
    srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&p.rtp);
    srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&p.rtcp);
  }
  p.ssrc.type = sends ? ssrc_any_outbound : ssrc_any_inbound;
  Bytes k = base64(key);
  k.resize(64);
  p.key = k.data();
  p.window_size = 256;
  srtp_t s = nullptr;
  srtp_create(&s, &p);
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> o{{"--warmup-ms", "2000"}, {"--duration-ms", "5000"}, {"--tick-us", "1000"}};
  for (int i = 1; i + 1 < argc; i += 2) o[argv[i]] = argv[i + 1];
  rlimit files{20000, 20000};
  setrlimit(RLIMIT_NOFILE, &files);
  prctl(PR_SET_TIMERSLACK, 1000);
  // Use real-time priority: late packets reach the engine in bursts, which are cheaper. Continue without it when it is
  // not permitted; send_late_us shows the effect.
  const sched_param first{.sched_priority = 1};
  sched_setscheduler(0, SCHED_FIFO, &first);
  srtp_init();
  std::map<std::string, std::vector<Bytes>> payloads;
  const auto frames_of = [&](const std::string& codec) -> const std::vector<Bytes>* {
    auto& frames = payloads[codec];
    if (frames.empty()) {
      std::ifstream f(o["--payloads"] + "/" + codec + ".pay", std::ios::binary);
      const Bytes all((std::istreambuf_iterator<char>(f)), {});
      for (size_t at = 0; at + 2 <= all.size();) {
        const size_t n = static_cast<size_t>(all[at]) << 8 | all[at + 1];
        if (at + 2 + n > all.size()) break;
        if (n)
          frames.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at) + 2,
                              all.begin() + static_cast<std::ptrdiff_t>(at + 2 + n));
        at += 2 + n;
      }
    }
    return frames.empty() ? nullptr : &frames;
  };

  std::vector<Leg> legs;
  {
    std::ifstream f(o["--legs"]);
    std::string line;
    while (std::getline(f, line)) {
      std::vector<std::string> c;
      std::stringstream s(line + ",");
      for (std::string cell; std::getline(s, cell, ',');) c.push_back(cell);
      if (c.size() < 8 || c[0].empty() || !std::isdigit(static_cast<unsigned char>(c[0][0]))) continue;
      Leg leg;
      leg.call = std::atoi(c[0].c_str());
      leg.socket = std::atoi(c[1].c_str());
      leg.engine_port = static_cast<uint16_t>(std::atoi(c[2].c_str()));
      leg.codec = c[3];
      leg.pt = std::atoi(c[4].c_str());
      leg.crypto = c[5];
      if (!leg.crypto.empty()) {
        leg.tx = session(leg.crypto, c[6], true);
        leg.rx = session(leg.crypto, c[7], false);
      }
      leg.frames = frames_of(leg.codec);
      leg.clock_step = leg.codec == "OPUS" ? 960 : 160;
      if (!leg.frames) {
        std::fprintf(stderr, "load: no payloads of %s\n", leg.codec.c_str());
        return 1;
      }
      legs.push_back(std::move(leg));
    }
  }
  std::map<int, Batch> sockets;  // by port
  std::unordered_map<uint16_t, Leg*> by_engine_port;
  std::map<int, Leg*> first_of_call;
  unsigned random = 1;
  const uint64_t start = now_us(CLOCK_MONOTONIC) + 50'000;
  for (size_t i = 0; i < legs.size(); ++i) {
    Leg& leg = legs[i];
    leg.batch = &sockets[leg.socket];
    int& fd = leg.batch->fd;
    if (!fd) {
      fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
      sockaddr_in a{};
      a.sin_family = AF_INET;
      a.sin_port = htons(static_cast<uint16_t>(leg.socket));
      a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      const int room = 8 << 20, one = 1;
      setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
      setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
      setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
      if (bind(fd, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) {
        std::perror("load: bind");
        return 1;
      }
    }
    leg.to.sin_family = AF_INET;
    leg.to.sin_port = htons(leg.engine_port);
    leg.to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    by_engine_port[leg.engine_port] = &leg;
    if (Leg*& first = first_of_call[leg.call]) {
      leg.other = first;
      first->other = &leg;
    } else {
      first = &leg;
    }
    random = random * 1664525u + 1013904223u;
    leg.seq = static_cast<uint16_t>(random >> 17);
    leg.ts = random;
    leg.ssrc = random ^ 0x5a5a5a5a;
    leg.frame = (random >> 8) % leg.frames->size();
  }
  // Spread the legs evenly over the 20 ms in random order, as in independent calls. Successive packets, and the two
  // legs of a call, then do not share cache lines of the engine.
  std::vector<size_t> turns(legs.size());
  std::iota(turns.begin(), turns.end(), size_t{0});
  std::shuffle(turns.begin(), turns.end(), std::mt19937(12345));
  for (size_t i = 0; i < legs.size(); ++i) legs[i].next_us = start + turns[i] * 20'000 / legs.size();

  const uint64_t tick = static_cast<uint64_t>(std::atoi(o["--tick-us"].c_str()));
  const uint64_t measure_from = start + 1000u * static_cast<uint64_t>(std::atoi(o["--warmup-ms"].c_str()));
  const uint64_t measure_to = measure_from + 1000u * static_cast<uint64_t>(std::atoi(o["--duration-ms"].c_str()));
  std::vector<int> pids;
  {
    std::stringstream s(o["--pid"]);
    for (std::string p; std::getline(s, p, ',');) pids.push_back(std::atoi(p.c_str()));
  }
  // Sort legs by their first packet, so that a tick visits only the legs that are due.
  std::sort(legs.begin(), legs.end(), [](const Leg& a, const Leg& b) { return a.next_us < b.next_us; });
  by_engine_port.clear();
  first_of_call.clear();
  for (auto& leg : legs) {
    by_engine_port[leg.engine_port] = &leg;
    if (Leg*& first = first_of_call[leg.call]) {
      leg.other = first;
      first->other = &leg;
    } else {
      first = &leg;
    }
  }

  std::vector<uint32_t> latency, late;
  latency.reserve(1 << 20);
  uint64_t sent = 0, received = 0, strangers = 0, bad = 0;
  double cpu_before = 0, cpu_after = 0, machine_before = 0, machine_after = 0, own_before = 0, own_after = 0;
  bool measuring = false;
  size_t cursor = 0;
  const auto drain = [&] {
    static uint8_t data[64][2048];
    static mmsghdr msgs[64];
    static iovec vecs[64];
    static sockaddr_in from[64];
    static uint8_t control[64][128];
    for (const auto& [port, socket] : sockets) {
      for (;;) {
        for (int i = 0; i < 64; ++i) {
          vecs[i] = {data[i], sizeof data[i]};
          msgs[i].msg_hdr = {&from[i], sizeof from[i], &vecs[i], 1, control[i], sizeof control[i], 0};
        }
        const int n = recvmmsg(socket.fd, msgs, 64, MSG_DONTWAIT, nullptr);
        for (int i = 0; i < n; ++i) {
          const auto found = by_engine_port.find(ntohs(from[i].sin_port));
          if (found == by_engine_port.end()) {
            ++strangers;
            continue;
          }
          Leg& leg = *found->second;
          int size = static_cast<int>(msgs[i].msg_len);
          if (size < 12 || (data[i][0] & 0xc0) != 0x80) {
            ++bad;
            continue;
          }
          if (data[i][1] >= 192 && data[i][1] <= 223) continue;
          if (leg.rx && srtp_unprotect(leg.rx, data[i], &size) != srtp_err_status_ok) {
            ++bad;
            continue;
          }
          ++leg.received;
          if (!measuring) continue;
          ++received;
          if ((data[i][1] & 0x7f) != leg.pt) ++bad;
          // Engines relay equal codecs byte for byte, so the payload still contains the time of sending.
          if (leg.other && leg.other->codec == leg.codec && size >= 12 + 12) {
            uint64_t at = 0;
            if (std::memcmp(data[i] + 12, "BNCH", 4) != 0) {
              ++bad;
              continue;
            }
            std::memcpy(&at, data[i] + 16, 8);
            for (cmsghdr* c = CMSG_FIRSTHDR(&msgs[i].msg_hdr); c; c = CMSG_NXTHDR(&msgs[i].msg_hdr, c)) {
              if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_TIMESTAMPNS) continue;
              timespec t;
              std::memcpy(&t, CMSG_DATA(c), sizeof t);
              const uint64_t arrived =
                  static_cast<uint64_t>(t.tv_sec) * 1'000'000 + static_cast<uint64_t>(t.tv_nsec) / 1000;
              latency.push_back(arrived > at ? static_cast<uint32_t>(arrived - at) : 0);
            }
          }
        }
        if (n < 64) break;
      }
    }
  };

  for (uint64_t next = start, now = 0; next < measure_to; next += std::max<uint64_t>(1, (now - next) / tick) * tick) {
    const timespec until{static_cast<time_t>(next / 1'000'000), static_cast<long>(next % 1'000'000 * 1000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    // The loop skips missed ticks, so that it ends on time on a busy machine too.
    now = std::max(next, now_us(CLOCK_MONOTONIC));
    if (!measuring && now >= measure_from) {
      drain();
      measuring = true;
      cpu_before = cpu_us(pids);
      machine_before = machine_us();
      own_before = static_cast<double>(now_us(CLOCK_PROCESS_CPUTIME_ID));
    }
    while (legs[cursor].next_us <= now) {
      Leg& leg = legs[cursor];
      uint8_t* packet = leg.batch->next();
      const Bytes& frame = (*leg.frames)[leg.frame++ % leg.frames->size()];
      const uint32_t ts = htonl(leg.ts), ssrc = htonl(leg.ssrc);
      const uint16_t seq = htons(leg.seq++);
      packet[0] = 0x80;
      packet[1] = static_cast<uint8_t>(leg.pt);
      std::memcpy(packet + 2, &seq, 2);
      std::memcpy(packet + 4, &ts, 4);
      std::memcpy(packet + 8, &ssrc, 4);
      std::memcpy(packet + 12, frame.data(), frame.size());
      if (leg.other && leg.other->codec == leg.codec && frame.size() >= 12) {
        const uint64_t at = now_us(CLOCK_REALTIME);
        std::memcpy(packet + 12, "BNCH", 4);
        std::memcpy(packet + 16, &at, 8);
      }
      leg.ts += leg.clock_step;
      int size = static_cast<int>(12 + frame.size());
      if (leg.tx) srtp_protect(leg.tx, packet, &size);
      leg.batch->added(static_cast<size_t>(size), leg.to);
      ++leg.sent;
      if (measuring) {
        ++sent;
        late.push_back(static_cast<uint32_t>(now - leg.next_us));
      }
      leg.next_us += 20'000;
      cursor = (cursor + 1) % legs.size();
    }
    for (auto& [port, socket] : sockets) socket.flush();
    drain();
  }
  cpu_after = cpu_us(pids);
  machine_after = machine_us();
  own_after = static_cast<double>(now_us(CLOCK_PROCESS_CPUTIME_ID));
  const long rss = rss_kb(pids);
  for (int i = 0; i < 15; ++i) {
    usleep(20'000);
    drain();
  }
  const double seconds = static_cast<double>(measure_to - measure_from) / 1e6, cpu = cpu_after - cpu_before;
  const double other = machine_after - machine_before - cpu - (own_after - own_before);
  uint64_t silent = 0;
  for (const auto& leg : legs) silent += leg.received == 0;
  std::printf(
      "{\"sent\":%lu,\"received\":%lu,\"loss_pct\":%.4f,\"bad\":%lu,\"strangers\":%lu,\"silent_legs\":%lu,\"seconds\":%"
      ".3f,\"cpu_us_per_packet\":%.3f,"
      "\"core_pct\":%.2f,\"rss_kb\":%ld,\"latency_us\":{\"p50\":%u,\"p99\":%u},\"send_late_us_p99\":%u,\"other_core_"
      "pct\":%.1f}\n",
      sent, received,
      sent ? std::max(0.0,
                      100.0 * (static_cast<double>(sent) - static_cast<double>(received)) / static_cast<double>(sent))
           : 0.0,
      bad, strangers, silent, seconds, received ? cpu / static_cast<double>(received) : 0.0, cpu / seconds / 1e4, rss,
      percentile(latency, 0.5), percentile(latency, 0.99), percentile(late, 0.99),
      std::max(0.0, other / seconds / 1e4));
  return 0;
}
