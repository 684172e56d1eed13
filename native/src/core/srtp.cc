#include "srtp.h"

#include <openssl/crypto.h>

#include <cstring>

#include "bytes.h"
#include "rtp.h"

namespace media {

const std::vector<SrtpSuiteFacts>& srtp_suites() {
  // RFC 4568 §6.2: the HMAC_SHA1_32 suites still use an 80-bit tag for SRTCP.
  static const std::vector<SrtpSuiteFacts> all{
      {"AES_CM_128_HMAC_SHA1_80", SrtpSuite::aes128_sha1_80, 16, 14, 10, 10, false},
      {"AES_CM_128_HMAC_SHA1_32", SrtpSuite::aes128_sha1_32, 16, 14, 4, 10, false},
      {"AES_256_CM_HMAC_SHA1_80", SrtpSuite::aes256_sha1_80, 32, 14, 10, 10, false},
      {"AES_256_CM_HMAC_SHA1_32", SrtpSuite::aes256_sha1_32, 32, 14, 4, 10, false},
      {"AEAD_AES_128_GCM", SrtpSuite::gcm128, 16, 12, 16, 16, true},
      {"AEAD_AES_256_GCM", SrtpSuite::gcm256, 32, 12, 16, 16, true},
  };
  return all;
}

const SrtpSuiteFacts* find_srtp_suite(const std::string& name) {
  for (const auto& s : srtp_suites())
    if (name == s.name) return &s;
  return nullptr;
}

std::unique_ptr<SrtpContext> SrtpContext::make(SrtpSuite suite, const uint8_t* key, size_t bytes) {
  const SrtpSuiteFacts& facts = srtp_suites()[static_cast<size_t>(suite)];
  if (bytes != facts.key_bytes + facts.salt_bytes) return nullptr;
  std::unique_ptr<SrtpContext> c(new SrtpContext());
  c->facts_ = &facts;
  c->master_.assign(key, key + bytes);
  c->derive(c->rtp_, 0, key, key + facts.key_bytes);
  c->derive(c->rtcp_, 3, key, key + facts.key_bytes);
  return c;
}

SrtpContext::~SrtpContext() {
  EVP_CIPHER_CTX_free(rtp_.cipher);
  EVP_CIPHER_CTX_free(rtcp_.cipher);
  OPENSSL_cleanse(master_.data(), master_.size());
}

bool SrtpContext::same_key(SrtpSuite suite, const uint8_t* key, size_t bytes) const {
  return facts_->suite == suite && bytes == master_.size() && CRYPTO_memcmp(key, master_.data(), bytes) == 0;
}

/** Derives the session keys (RFC 3711 §4.3.1, §4.3.3): encrypts zeros in counter mode, with the label XORed into the
 * salt. */
void SrtpContext::derive(Keys& keys, uint8_t first_label, const uint8_t* master_key, const uint8_t* master_salt) {
  const EVP_CIPHER* prf = facts_->key_bytes == 16 ? EVP_aes_128_ctr() : EVP_aes_256_ctr();
  EVP_CIPHER_CTX* c = EVP_CIPHER_CTX_new();
  const auto expand = [&](uint8_t label, uint8_t* out, size_t n) {
    uint8_t iv[16] = {};
    std::memcpy(iv, master_salt, facts_->salt_bytes);
    iv[7] ^= label;
    std::memset(out, 0, n);
    int made = 0;
    EVP_EncryptInit_ex(c, prf, nullptr, master_key, iv);
    EVP_EncryptUpdate(c, out, &made, out, static_cast<int>(n));
  };
  uint8_t key[32], auth[20];
  expand(first_label, key, facts_->key_bytes);
  expand(static_cast<uint8_t>(first_label + 1), auth, 20);
  expand(static_cast<uint8_t>(first_label + 2), keys.salt, facts_->salt_bytes);
  EVP_CIPHER_CTX_free(c);
  keys.cipher = EVP_CIPHER_CTX_new();
  if (facts_->gcm)
    EVP_CipherInit_ex(keys.cipher, facts_->key_bytes == 16 ? EVP_aes_128_gcm() : EVP_aes_256_gcm(), nullptr, key,
                      nullptr, 1);
  else
    EVP_EncryptInit_ex(keys.cipher, prf, nullptr, key, nullptr);
  keys.hmac.set_key(auth, 20);
  OPENSSL_cleanse(key, sizeof key);
  OPENSSL_cleanse(auth, sizeof auth);
}

SrtpContext::Source* SrtpContext::find(uint32_t ssrc) {
  for (auto& s : sources_)
    if (s.used && s.ssrc == ssrc) return &s;
  return nullptr;
}

SrtpContext::Source& SrtpContext::replace(uint32_t ssrc) {
  Source* oldest = &sources_[0];
  for (auto& s : sources_)
    if (!s.used || s.last_use < oldest->last_use) oldest = &s;
  *oldest = Source{};
  oldest->ssrc = ssrc;
  oldest->used = true;
  return *oldest;
}

void SrtpContext::preset_index(uint32_t ssrc, uint64_t index) {
  Source* s = find(ssrc);
  (s ? *s : replace(ssrc)).window.take(index);
}

/** Estimates a packet's index (RFC 3711 §3.3.1): chooses the roll-over counter that is nearest to the highest index. */
uint64_t SrtpContext::estimate(const Source* s, uint16_t seq) {
  if (!s || !s->window.any()) return seq;
  const uint64_t top = s->window.top();
  uint64_t roc = top >> 16;
  const auto high = static_cast<uint16_t>(top);
  if (high < 0x8000) {
    if (seq > high && seq - high > 0x8000 && roc > 0) --roc;
  } else if (high - 0x8000 > seq) {
    ++roc;
  }
  return roc << 16 | seq;
}

bool SrtpContext::ctr(Keys& k, uint32_t ssrc, uint64_t index, uint8_t* data, size_t n) {
  uint8_t iv[16] = {};
  std::memcpy(iv, k.salt, 14);
  uint8_t mix[10];
  put32(mix, ssrc);
  put16(mix + 4, static_cast<uint16_t>(index >> 32));
  put32(mix + 6, static_cast<uint32_t>(index));
  for (size_t i = 0; i < 10; ++i) iv[4 + i] ^= mix[i];
  int made = 0;
  return EVP_EncryptInit_ex(k.cipher, nullptr, nullptr, nullptr, iv) == 1 &&
         EVP_EncryptUpdate(k.cipher, data, &made, data, static_cast<int>(n)) == 1;
}

bool SrtpContext::gcm(Keys& k, const uint8_t iv[12], const uint8_t* aad, size_t aad_bytes, const uint8_t* aad2,
                      size_t aad2_bytes, uint8_t* data, size_t n, uint8_t* tag, bool seal) {
  int made = 0;
  EVP_CIPHER_CTX* c = k.cipher;
  if (EVP_CipherInit_ex(c, nullptr, nullptr, nullptr, iv, seal ? 1 : 0) != 1) return false;
  if (!seal && EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, 16, tag) != 1) return false;
  if (EVP_CipherUpdate(c, nullptr, &made, aad, static_cast<int>(aad_bytes)) != 1) return false;
  if (aad2_bytes && EVP_CipherUpdate(c, nullptr, &made, aad2, static_cast<int>(aad2_bytes)) != 1) return false;
  if (n && EVP_CipherUpdate(c, data, &made, data, static_cast<int>(n)) != 1) return false;
  if (EVP_CipherFinal_ex(c, data + n, &made) != 1) return false;
  return !seal || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, 16, tag) == 1;
}

namespace {

/** Writes the IV of RFC 7714 §8.1: two zero bytes, SSRC, roll-over counter and sequence number, XORed with the salt. */
void gcm_rtp_iv(const uint8_t* salt, uint32_t ssrc, uint64_t index, uint8_t iv[12]) {
  uint8_t v[12] = {};
  put32(v + 2, ssrc);
  put32(v + 6, static_cast<uint32_t>(index >> 16));
  put16(v + 10, static_cast<uint16_t>(index));
  for (size_t i = 0; i < 12; ++i) iv[i] = v[i] ^ salt[i];
}

/** Writes the IV of RFC 7714 §9.1. */
void gcm_rtcp_iv(const uint8_t* salt, uint32_t ssrc, uint32_t index, uint8_t iv[12]) {
  uint8_t v[12] = {};
  put32(v + 2, ssrc);
  put32(v + 8, index & 0x7fffffff);
  for (size_t i = 0; i < 12; ++i) iv[i] = v[i] ^ salt[i];
}

}  // namespace

size_t SrtpContext::protect(uint8_t* packet, size_t n) {
  RtpView v;
  if (!parse_rtp_header(packet, n, v)) return 0;
  Source* s = find(v.ssrc);
  if (!s) s = &replace(v.ssrc);
  s->last_use = ++uses_;
  const uint64_t index = estimate(s, v.seq);
  // Using an index twice with one key would reveal both payloads (RFC 3711 §9.1).
  if (!s->window.fresh(index)) return 0;
  s->window.take(index);
  if (facts_->gcm) {
    uint8_t iv[12];
    gcm_rtp_iv(rtp_.salt, v.ssrc, index, iv);
    return gcm(rtp_, iv, packet, v.header, nullptr, 0, packet + v.header, n - v.header, packet + n, true) ? n + 16 : 0;
  }
  if (!ctr(rtp_, v.ssrc, index, packet + v.header, n - v.header)) return 0;
  uint8_t roc[4], tag[20];
  put32(roc, static_cast<uint32_t>(index >> 16));
  rtp_.hmac.sign(packet, n, roc, 4, tag);
  std::memcpy(packet + n, tag, facts_->rtp_tag_bytes);
  return n + facts_->rtp_tag_bytes;
}

SrtpResult SrtpContext::unprotect(uint8_t* packet, size_t& n) {
  const size_t tag_bytes = facts_->rtp_tag_bytes;
  RtpView v;
  if (n < kRtpHeader + tag_bytes || !parse_rtp_header(packet, n - tag_bytes, v)) return SrtpResult::malformed;
  const Source* s = find(v.ssrc);
  const uint64_t index = estimate(s, v.seq);
  const bool old = s && s->window.forgot(index);
  if (s && !old && !s->window.fresh(index)) return SrtpResult::replayed;
  const SrtpResult result = old ? SrtpResult::replayed : open(packet, n, v, index);
  // The peer may have counted on past a wrap while it sent nothing. An index that far ahead cannot be a replay.
  if (s && result != SrtpResult::ok && open(packet, n, v, index + 0x10000) == SrtpResult::ok) return SrtpResult::ok;
  return result;
}

SrtpResult SrtpContext::unprotect_after(SrtpContext& earlier, uint8_t* packet, size_t& n) {
  RtpView v;
  const size_t tag_bytes = facts_->rtp_tag_bytes;
  if (n < kRtpHeader + tag_bytes || !parse_rtp_header(packet, n - tag_bytes, v)) return SrtpResult::malformed;
  const Source* s = earlier.find(v.ssrc);
  if (!s || find(v.ssrc)) return SrtpResult::auth_failed;
  return open(packet, n, v, estimate(s, v.seq));
}

SrtpResult SrtpContext::open(uint8_t* packet, size_t& n, const RtpView& v, uint64_t index) {
  const size_t tag_bytes = facts_->rtp_tag_bytes;
  const size_t plain = n - tag_bytes;
  if (facts_->gcm) {
    uint8_t iv[12];
    gcm_rtp_iv(rtp_.salt, v.ssrc, index, iv);
    const auto decrypt = [&] {
      return gcm(rtp_, iv, packet, v.header, nullptr, 0, packet + v.header, plain - v.header, packet + plain, false);
    };
    if (!decrypt()) {
      decrypt();  // its key stream restores the packet for another index or key
      return SrtpResult::auth_failed;
    }
  } else {
    uint8_t roc[4], tag[20];
    put32(roc, static_cast<uint32_t>(index >> 16));
    rtp_.hmac.sign(packet, plain, roc, 4, tag);
    if (CRYPTO_memcmp(tag, packet + plain, tag_bytes) != 0) return SrtpResult::auth_failed;
    if (!ctr(rtp_, v.ssrc, index, packet + v.header, plain - v.header)) return SrtpResult::malformed;
  }
  Source* s = find(v.ssrc);
  if (!s) s = &replace(v.ssrc);
  s->last_use = ++uses_;
  s->window.take(index);
  n = plain;
  return SrtpResult::ok;
}

size_t SrtpContext::protect_rtcp(uint8_t* packet, size_t n) {
  if (n < 8) return 0;
  rtcp_index_ = (rtcp_index_ + 1) & 0x7fffffff;
  const uint32_t ssrc = get32(packet + 4);
  uint8_t word[4];
  put32(word, 0x80000000u | rtcp_index_);
  if (facts_->gcm) {
    uint8_t iv[12];
    gcm_rtcp_iv(rtcp_.salt, ssrc, rtcp_index_, iv);
    if (!gcm(rtcp_, iv, packet, 8, word, 4, packet + 8, n - 8, packet + n, true)) return 0;
    std::memcpy(packet + n + 16, word, 4);
    return n + 20;
  }
  if (!ctr(rtcp_, ssrc, rtcp_index_, packet + 8, n - 8)) return 0;
  std::memcpy(packet + n, word, 4);
  uint8_t tag[20];
  rtcp_.hmac.sign(packet, n + 4, nullptr, 0, tag);
  std::memcpy(packet + n + 4, tag, facts_->rtcp_tag_bytes);
  return n + 4 + facts_->rtcp_tag_bytes;
}

SrtpResult SrtpContext::unprotect_rtcp(uint8_t* packet, size_t& n) {
  const size_t tag_bytes = facts_->rtcp_tag_bytes;
  if (n < 8 + 4 + tag_bytes) return SrtpResult::malformed;
  const size_t plain = n - 4 - tag_bytes;
  const uint32_t ssrc = get32(packet + 4);
  const uint8_t* word = facts_->gcm ? packet + n - 4 : packet + plain;
  const uint32_t index = get32(word) & 0x7fffffff;
  const bool encrypted = get32(word) & 0x80000000u;
  Source* s = nullptr;
  for (auto& known : rtcp_sources_)
    if (known.used && known.ssrc == ssrc) s = &known;
  if (s && !s->window.fresh(index)) return SrtpResult::replayed;
  if (facts_->gcm) {
    uint8_t iv[12], tag[16];
    gcm_rtcp_iv(rtcp_.salt, ssrc, index, iv);
    // RFC 7714 §9.3: GCM authenticates a whole unencrypted packet as associated data, with an empty plaintext.
    if (!encrypted) return SrtpResult::auth_failed;
    std::memcpy(tag, packet + plain, 16);
    if (!gcm(rtcp_, iv, packet, 8, word, 4, packet + 8, plain - 8, tag, false)) return SrtpResult::auth_failed;
  } else {
    uint8_t tag[20];
    rtcp_.hmac.sign(packet, plain + 4, nullptr, 0, tag);
    if (CRYPTO_memcmp(tag, packet + plain + 4, tag_bytes) != 0) return SrtpResult::auth_failed;
    if (encrypted && !ctr(rtcp_, ssrc, index, packet + 8, plain - 8)) return SrtpResult::malformed;
  }
  if (!s) {
    s = &rtcp_sources_[0];
    for (auto& known : rtcp_sources_)
      if (!known.used || known.last_use < s->last_use) s = &known;
    *s = Source{};
    s->used = true;
    s->ssrc = ssrc;
  }
  s->last_use = ++uses_;
  s->window.take(index);
  n = plain;
  return SrtpResult::ok;
}

}  // namespace media
