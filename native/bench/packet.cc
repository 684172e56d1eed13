// Measures the user-space cost of a packet for relay, conversion and SRTP. Prints nanoseconds per packet. There is no
// pass mark: this is a tool for profiling.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "../src/core/stream.h"

using namespace media;

namespace {

struct Nowhere final : Wire {
  bool send_rtp(const uint8_t*, size_t, const Address&) override { return true; }
  bool send_rtcp(const uint8_t*, size_t, const Address&) override { return true; }
};

StreamConfig settled(const Address& remote, const char* name, CodecId codec, uint8_t pt) {
  StreamConfig c;
  c.remote_rtp = c.remote_rtcp = remote;
  c.may_send = c.may_receive = c.sends = true;
  PayloadFacts f;
  f.kind = PayloadKind::audio;
  f.payload_type = pt;
  f.codec = codec;
  f.name = intern(name);
  c.receive = {f};
  c.send = f;
  return c;
}

double once(bool alaw, const char* suite, int calls) {
  TimerWheel wheel;
  EventQueue events(1024);
  ThreadCounters counters;
  std::vector<Network> denied;
  ThreadContext context{wheel, events, nullptr, &denied, &counters};
  Nowhere wire;
  Address remote;
  Address::parse("192.0.2.1", 4000, remote);
  std::vector<std::unique_ptr<Stream>> near, far;
  for (int i = 0; i < calls; ++i) {
    near.push_back(std::make_unique<Stream>(1, Policy{}, context, wire, std::make_shared<StreamCounters>(), "x", 0));
    far.push_back(std::make_unique<Stream>(2, Policy{}, context, wire, std::make_shared<StreamCounters>(), "x", 0));
    near.back()->describe(settled(remote, "PCMU", CodecId::pcmu, 0), 0);
    StreamConfig c = alaw ? settled(remote, "PCMA", CodecId::pcma, 8) : settled(remote, "PCMU", CodecId::pcmu, 0);
    if (suite) {
      const auto* facts = find_srtp_suite(suite);
      c.secured = true;
      c.suite = facts->suite;
      c.receive_key.assign(facts->key_bytes + facts->salt_bytes, 1);
      c.send_key.assign(facts->key_bytes + facts->salt_bytes, 2);
    }
    far.back()->describe(c, 0);
    near.back()->send_to(far.back().get(), 0);
    far.back()->send_to(near.back().get(), 0);
  }
  std::vector<uint8_t> room(2048 + kTailRoom, 0x55);
  uint8_t* p = room.data();
  const int rounds = 100'000 / calls;
  const auto start = std::chrono::steady_clock::now();
  for (int n = 0; n < rounds; ++n)
    for (int i = 0; i < calls; ++i) {
      write_rtp_header(p, 0, false, static_cast<uint16_t>(n), static_cast<uint32_t>(n) * 160, 77);
      near[static_cast<size_t>(i)]->on_rtp(p, 172, remote, static_cast<uint64_t>(n) * 20'000);
    }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / rounds / calls;
}

}  // namespace

/** Returns the lowest cost of eight runs. The others include delays caused by other work of the machine. */
static double run(bool alaw, const char* suite, int calls) {
  double least = 1e9;
  for (int i = 0; i < 8; ++i) least = std::min(least, once(alaw, suite, calls));
  return least;
}

int main() {
  for (const int calls : {1, 1000}) {
    std::printf(
        "%4d calls: relay %.0f ns, PCMU to PCMA %.0f ns, to AES_CM_128_HMAC_SHA1_80 %.0f ns, to AEAD_AES_128_GCM %.0f "
        "ns\n",
        calls, run(false, nullptr, calls), run(true, nullptr, calls), run(false, "AES_CM_128_HMAC_SHA1_80", calls),
        run(false, "AEAD_AES_128_GCM", calls));
  }
}
