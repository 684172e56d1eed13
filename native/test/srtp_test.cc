// Our SRTP against libsrtp2 in both directions and every suite; libsrtp's vectors; wraps, replay, wrong keys.
#include <srtp2/srtp.h>

#include <cstring>
#include <string>
#include <vector>

#include "../src/core/bytes.h"
#include "../src/core/rtp.h"
#include "../src/core/srtp.h"
#include "../src/core/srtp_receiver.h"
#include "check.h"

using namespace media;

namespace {

std::vector<uint8_t> clear_rtp(uint16_t seq, uint32_t ssrc = 0xcafebabe, size_t payload = 160) {
  std::vector<uint8_t> p(kRtpHeader + payload + 64);
  write_rtp_header(p.data(), 0, false, seq, seq * 160u, ssrc);
  for (size_t i = 0; i < payload; ++i) p[kRtpHeader + i] = static_cast<uint8_t>(i * 7 + seq);
  return p;
}

struct Peer {
  srtp_t session = nullptr;
  Peer(SrtpSuite suite, const std::vector<uint8_t>& key, bool sends) {
    srtp_policy_t policy{};
    switch (suite) {
      case SrtpSuite::aes128_sha1_80:
        srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&policy.rtp);
        srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&policy.rtcp);
        break;
      case SrtpSuite::aes128_sha1_32:
        srtp_crypto_policy_set_aes_cm_128_hmac_sha1_32(&policy.rtp);
        srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&policy.rtcp);
        break;
      case SrtpSuite::aes256_sha1_80:
        srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80(&policy.rtp);
        srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80(&policy.rtcp);
        break;
      case SrtpSuite::aes256_sha1_32:
        srtp_crypto_policy_set_aes_cm_256_hmac_sha1_32(&policy.rtp);
        srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80(&policy.rtcp);
        break;
      case SrtpSuite::gcm128:
        srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp);
        srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp);
        break;
      case SrtpSuite::gcm256:
        srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtp);
        srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtcp);
        break;
    }
    policy.ssrc.type = sends ? ssrc_any_outbound : ssrc_any_inbound;
    policy.key = const_cast<unsigned char*>(key.data());
    policy.window_size = 128;
    srtp_create(&session, &policy);
  }
  ~Peer() {
    if (session) srtp_dealloc(session);
  }
};

void against_libsrtp(const SrtpSuiteFacts& facts) {
  const std::string name = facts.name;
  std::vector<uint8_t> key(facts.key_bytes + facts.salt_bytes);
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<uint8_t>(i * 11 + 3);
  Peer out(facts.suite, key, true), in(facts.suite, key, false);
  if (!check::ok(out.session && in.session, name + ": libsrtp2 supports the suite")) return;
  auto ours_out = SrtpContext::make(facts.suite, key.data(), key.size());
  auto ours_in = SrtpContext::make(facts.suite, key.data(), key.size());
  bool theirs_read = true, ours_read = true, same = true;
  // Start just below a wrap of the sequence number and end well above it.
  for (uint32_t i = 65000; i < 66000; ++i) {
    const auto seq = static_cast<uint16_t>(i);
    auto a = clear_rtp(seq), b = clear_rtp(seq);
    const auto plain = clear_rtp(seq);
    const size_t n = ours_out->protect(a.data(), kRtpHeader + 160);
    int m = kRtpHeader + 160;
    srtp_protect(out.session, b.data(), &m);
    if (n != static_cast<size_t>(m) || std::memcmp(a.data(), b.data(), n) != 0) same = false;
    int got = static_cast<int>(n);
    if (srtp_unprotect(in.session, a.data(), &got) != srtp_err_status_ok ||
        std::memcmp(a.data(), plain.data(), kRtpHeader + 160) != 0)
      theirs_read = false;
    size_t back = static_cast<size_t>(m);
    if (ours_in->unprotect(b.data(), back) != SrtpResult::ok || back != kRtpHeader + 160 ||
        std::memcmp(b.data(), plain.data(), back) != 0)
      ours_read = false;
  }
  check::ok(same, name + ": our packets equal libsrtp2's byte for byte, across a wrap of the sequence number");
  check::ok(theirs_read, name + ": libsrtp2 reads our SRTP");
  check::ok(ours_read, name + ": we read libsrtp2's SRTP");

  uint8_t report[28 + 64] = {0x80, 200, 0, 6};
  put32(report + 4, 0xcafebabe);
  for (int i = 8; i < 28; ++i) report[i] = static_cast<uint8_t>(i);
  uint8_t theirs[sizeof report];
  std::memcpy(theirs, report, sizeof report);
  uint8_t plain[28];
  std::memcpy(plain, report, 28);
  const size_t n = ours_out->protect_rtcp(report, 28);
  int m = static_cast<int>(n);
  check::ok(srtp_unprotect_rtcp(in.session, report, &m) == srtp_err_status_ok && m == 28 &&
                std::memcmp(report, plain, 28) == 0,
            name + ": libsrtp2 reads our SRTCP");
  m = 28;
  srtp_protect_rtcp(out.session, theirs, &m);
  auto again = std::vector<uint8_t>(theirs, theirs + m);
  size_t k = static_cast<size_t>(m);
  check::ok(ours_in->unprotect_rtcp(theirs, k) == SrtpResult::ok && k == 28 && std::memcmp(theirs, plain, 28) == 0,
            name + ": we read libsrtp2's SRTCP");
  k = again.size();
  check::ok(ours_in->unprotect_rtcp(again.data(), k) == SrtpResult::replayed,
            name + ": a replayed SRTCP packet is refused");
}

void refusals(const SrtpSuiteFacts& facts) {
  const std::string name = facts.name;
  std::vector<uint8_t> key(facts.key_bytes + facts.salt_bytes, 7), other(key.size(), 8);
  auto out = SrtpContext::make(facts.suite, key.data(), key.size());
  auto in = SrtpContext::make(facts.suite, key.data(), key.size());
  auto wrong = SrtpContext::make(facts.suite, other.data(), other.size());
  auto p = clear_rtp(100);
  const size_t n = out->protect(p.data(), kRtpHeader + 160);
  auto copy = p, bent = p, cut = p;
  size_t m = n;
  check::ok(wrong->unprotect(copy.data(), m) == SrtpResult::auth_failed,
            name + ": a packet with another key is refused");
  bent[20] ^= 1;
  m = n;
  check::ok(in->unprotect(bent.data(), m) == SrtpResult::auth_failed,
            name + ": a packet with a changed bit is refused");
  m = n - 1;
  check::ok(in->unprotect(cut.data(), m) == SrtpResult::auth_failed, name + ": a truncated packet is refused");
  copy = p;
  m = n;
  check::ok(in->unprotect(copy.data(), m) == SrtpResult::ok, name + ": refused packets do not change the state");
  copy = p;
  m = n;
  check::ok(in->unprotect(copy.data(), m) == SrtpResult::replayed, name + ": a replayed packet is refused");
  auto twice = clear_rtp(100);
  check::ok(out->protect(twice.data(), kRtpHeader + 160) == 0,
            name + ": an index is never encrypted twice with one key");
  check::ok(SrtpContext::make(facts.suite, key.data(), key.size() - 1) == nullptr,
            name + ": a key of another length is refused");
}

void reordering() {
  std::vector<uint8_t> key(30, 1);
  auto out = SrtpContext::make(SrtpSuite::aes128_sha1_80, key.data(), 30);
  auto in = SrtpContext::make(SrtpSuite::aes128_sha1_80, key.data(), 30);
  // 24 hours at 50 packets per second have 65 wraps. Cross each wrap out of order.
  bool all = true;
  uint64_t index = 0;
  for (int wrap = 0; wrap < 66; ++wrap) {
    for (; index < static_cast<uint64_t>(wrap + 1) * 65536 - 8; index += 97) {
      auto p = clear_rtp(static_cast<uint16_t>(index));
      size_t n = out->protect(p.data(), kRtpHeader + 160);
      if (in->unprotect(p.data(), n) != SrtpResult::ok) all = false;
    }
    index = static_cast<uint64_t>(wrap + 1) * 65536 - 4;
    std::vector<std::pair<std::vector<uint8_t>, size_t>> burst;
    for (int i = 0; i < 8; ++i, ++index) {
      auto p = clear_rtp(static_cast<uint16_t>(index));
      const size_t n = out->protect(p.data(), kRtpHeader + 160);
      burst.emplace_back(std::move(p), n);
    }
    for (const int i : {1, 0, 5, 4, 3, 2, 7, 6})
      if (in->unprotect(burst[static_cast<size_t>(i)].first.data(), burst[static_cast<size_t>(i)].second) !=
          SrtpResult::ok)
        all = false;
  }
  check::ok(all, "the roll-over counter survives 66 wraps, each crossed out of order");
}

/** A peer gets a new key in a call whose sequence numbers have wrapped, and goes on counting or begins again. */
void rekeyed(const SrtpSuiteFacts& facts, bool goes_on) {
  StreamConfig config;
  config.secured = true;
  config.suite = facts.suite;
  config.receive_key.assign(facts.key_bytes + facts.salt_bytes, 1);
  SrtpReceiver in;
  in.describe(config, 0);
  auto old_key = SrtpContext::make(facts.suite, config.receive_key.data(), config.receive_key.size());
  const auto passes = [&in](SrtpContext& out, uint32_t index) {
    auto p = clear_rtp(static_cast<uint16_t>(index));
    size_t n = out.protect(p.data(), kRtpHeader + 160);
    const bool heard = in.unprotect(p.data(), n, 1) == SrtpResult::ok && n == kRtpHeader + 160;
    return heard && p[kRtpHeader + 1] == static_cast<uint8_t>(7 + index);
  };
  bool all = true;
  for (uint32_t index = 65'500; index < 65'600; ++index) all = passes(*old_key, index) && all;
  config.receive_key.assign(facts.key_bytes + facts.salt_bytes, 2);
  in.describe(config, 1);
  for (uint32_t index = 65'600; index < 65'610; ++index) all = passes(*old_key, index) && all;
  auto new_key = SrtpContext::make(facts.suite, config.receive_key.data(), config.receive_key.size());
  if (goes_on) new_key->preset_index(0xcafebabe, 65'609);
  for (uint32_t index = 65'610; index < 65'650; ++index) all = passes(*new_key, index) && all;
  check::ok(all, std::string(facts.name) + " is heard under a new key by a peer that " +
                     (goes_on ? "goes on counting roll-overs" : "begins to count roll-overs again"));
}

/** A peer goes on counting while it sends nothing, past a wrap of its sequence numbers. */
void counted_on(const SrtpSuiteFacts& facts) {
  const std::string name = facts.name;
  StreamConfig config;
  config.secured = true;
  config.suite = facts.suite;
  config.receive_key.assign(facts.key_bytes + facts.salt_bytes, 1);
  // 70,000 seems to be an old number, 100,000 a late or an early one.
  for (const uint32_t resumed : {70'000, 100'000}) {
    SrtpReceiver in;
    in.describe(config, 0);
    auto out = SrtpContext::make(facts.suite, config.receive_key.data(), config.receive_key.size());
    const auto made = [&](uint32_t index) {
      auto p = clear_rtp(static_cast<uint16_t>(index));
      p.resize(out->protect(p.data(), kRtpHeader + 160));
      return p;
    };
    const auto take = [&](std::vector<uint8_t> p, uint32_t index) {
      size_t n = p.size();
      const SrtpResult result = in.unprotect(p.data(), n, 1);
      const auto plain = clear_rtp(static_cast<uint16_t>(index));
      const bool same = n == kRtpHeader + 160 && std::memcmp(p.data(), plain.data(), n) == 0;
      return result == SrtpResult::ok && !same ? SrtpResult::malformed : result;
    };
    bool all = true;
    std::vector<uint8_t> old;
    for (uint32_t index = 29'900; index < 30'100; ++index) {
      old = made(index);
      all = take(old, index) == SrtpResult::ok && all;
    }
    out->preset_index(0xcafebabe, resumed - 1);
    auto bent = made(resumed);
    bent[20] ^= 1;
    const SrtpResult refused = take(bent, resumed);
    check::ok(refused != SrtpResult::ok, name + ": a changed packet past a wrap in silence is refused");
    for (uint32_t index = resumed + 1; index < resumed + 200; ++index)
      all = take(made(index), index) == SrtpResult::ok && all;
    check::ok(all, name + ": a peer is heard that has counted from 30,099 to " + std::to_string(resumed) +
                       " while it sent nothing");
    check::ok(take(old, 30'099) != SrtpResult::ok, name + ": a packet from before the silence is refused after it");
  }
}

std::vector<uint8_t> bytes(const std::string& hex) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return out;
}

/** Checks libsrtp's own test vectors (test/srtp_driver.c), one packet for each kind of cipher. */
void vectors() {
  struct Vector {
    const char* name;
    SrtpSuite suite;
    const char *key, *secured;
  };
  const std::string head = "800f1234decafbadcafebabe";
  static const Vector kVectors[] = {
      {"AES_CM_128_HMAC_SHA1_80", SrtpSuite::aes128_sha1_80,
       "e1f97a0d3e018be0d64fa32c06de41390ec675ad498afeebb6960b3aabe6",
       "4e55dc4ce79978d88ca4d215949d2402b78d6acc99ea179b8dbb"},
      {"AES_256_CM_HMAC_SHA1_80", SrtpSuite::aes256_sha1_80,
       "f0f04914b513f2763a1b1fa130f10e2998f6f6e43e4309d1e622a0e332b9f1b63b04803de51ee7c96423ab5b78d2",
       "f1d9de17ff251ff1aa007774b0b4b40da08d9d9a5b3a55d8873b"},
      {"AEAD_AES_128_GCM", SrtpSuite::gcm128, "000102030405060708090a0b0c0d0e0fa0a1a2a3a4a5a6a7a8a9aaab",
       "c5002ede04cfdd2eb91159e0880aa06ed2976826f796b201df3131a127e8a392"},
  };
  for (const auto& v : kVectors) {
    const auto key = bytes(v.key), wanted = bytes(head + v.secured);
    std::vector<uint8_t> packet = bytes(head);
    packet.resize(kRtpHeader + 16 + 64, 0xab);
    const auto out = SrtpContext::make(v.suite, key.data(), key.size());
    const size_t n = out->protect(packet.data(), kRtpHeader + 16);
    check::ok(n == wanted.size() && std::memcmp(packet.data(), wanted.data(), n) == 0,
              std::string(v.name) + ": encrypting gives libsrtp's test vector");
    size_t m = wanted.size();
    auto back = wanted;
    const auto in = SrtpContext::make(v.suite, key.data(), key.size());
    check::ok(in->unprotect(back.data(), m) == SrtpResult::ok && m == kRtpHeader + 16 && back[m - 1] == 0xab,
              std::string(v.name) + ": decrypting libsrtp's test vector gives the plaintext");
  }
}

}  // namespace

void srtp_tests() {
  srtp_init();
  vectors();
  for (const auto& facts : srtp_suites()) {
    against_libsrtp(facts);
    refusals(facts);
    for (const bool goes_on : {true, false}) rekeyed(facts, goes_on);
    counted_on(facts);
  }
  reordering();
  srtp_shutdown();
}
