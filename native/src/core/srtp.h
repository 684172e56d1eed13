// SRTP and SRTCP (RFC 3711, RFC 6188, RFC 7714) on OpenSSL's primitives. For audio packets this is several times
// cheaper than libsrtp2.
#pragma once
#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rtp.h"
#include "sha1.h"

namespace media {

enum class SrtpSuite : uint8_t { aes128_sha1_80, aes128_sha1_32, aes256_sha1_80, aes256_sha1_32, gcm128, gcm256 };

struct SrtpSuiteFacts {
  const char* name;
  SrtpSuite suite;
  size_t key_bytes, salt_bytes, rtp_tag_bytes, rtcp_tag_bytes;
  bool gcm;
};
const std::vector<SrtpSuiteFacts>& srtp_suites();
const SrtpSuiteFacts* find_srtp_suite(const std::string& name);

enum class SrtpResult : uint8_t { ok, malformed, auth_failed, replayed };

/** Remembers which of the last 128 indices were received (RFC 3711 §3.3.2). */
class ReplayWindow {
 public:
  bool fresh(uint64_t index) const {
    if (!any_ || index > top_) return true;
    const uint64_t behind = top_ - index;
    return behind < 128 && !(seen_ >> behind & 1);
  }
  /** Reports whether an index is too far back to be remembered. */
  bool forgot(uint64_t index) const { return any_ && index < top_ && top_ - index >= 128; }
  void take(uint64_t index) {
    if (!any_ || index > top_) {
      const uint64_t ahead = any_ ? index - top_ : 128;
      seen_ = ahead < 128 ? seen_ << ahead | 1 : 1;
      top_ = index;
      any_ = true;
    } else {
      seen_ |= static_cast<unsigned __int128>(1) << (top_ - index);
    }
  }
  uint64_t top() const { return top_; }
  bool any() const { return any_; }

 private:
  unsigned __int128 seen_ = 0;
  uint64_t top_ = 0;
  bool any_ = false;
};

/** One direction of one stream under one master key. */
class SrtpContext {
 public:
  /** Creates a context. `key` is the master key and salt, as in SDES. Null when its length is wrong. */
  static std::unique_ptr<SrtpContext> make(SrtpSuite suite, const uint8_t* key, size_t bytes);
  ~SrtpContext();
  SrtpContext(const SrtpContext&) = delete;
  SrtpContext& operator=(const SrtpContext&) = delete;

  /** Encrypts in place. The buffer has room for 16 more bytes. Returns the new length, or 0 for a malformed packet. */
  size_t protect(uint8_t* packet, size_t n);
  /** Authenticates and decrypts in place. `n` becomes the length of the plain packet. Changes state and packet only on
   * `ok`. */
  SrtpResult unprotect(uint8_t* packet, size_t& n);
  /**
   * The same for the first packet of an SSRC that had the key of an earlier context before, with the roll-over counter
   * of that one. Some peers go on counting under a new key (RFC 3711 §3.3.1), others begin again.
   */
  SrtpResult unprotect_after(SrtpContext& earlier, uint8_t* packet, size_t& n);
  /** Encrypts RTCP in place. The buffer has room for 20 more bytes. */
  size_t protect_rtcp(uint8_t* packet, size_t n);
  SrtpResult unprotect_rtcp(uint8_t* packet, size_t& n);

  bool same_key(SrtpSuite suite, const uint8_t* key, size_t bytes) const;
  /** Sets the last index (ROC and sequence number) of this SSRC, for tests of roll-overs. */
  void preset_index(uint32_t ssrc, uint64_t index);

 private:
  struct Keys {
    EVP_CIPHER_CTX* cipher = nullptr;
    uint8_t salt[14] = {};
    HmacSha1 hmac;
  };
  /** The state of one SSRC. The top of the window is its ROC and highest sequence number. */
  struct Source {
    uint32_t ssrc = 0;
    bool used = false;
    ReplayWindow window;
    uint64_t last_use = 0;
  };

  SrtpContext() = default;
  void derive(Keys& keys, uint8_t first_label, const uint8_t* master_key, const uint8_t* master_salt);
  Source* find(uint32_t ssrc);
  Source& replace(uint32_t ssrc);
  static uint64_t estimate(const Source* s, uint16_t seq);
  SrtpResult open(uint8_t* packet, size_t& n, const RtpView& v, uint64_t index);
  bool ctr(Keys& k, uint32_t ssrc, uint64_t index, uint8_t* data, size_t n);
  bool gcm(Keys& k, const uint8_t iv[12], const uint8_t* aad, size_t aad_bytes, const uint8_t* aad2, size_t aad2_bytes,
           uint8_t* data, size_t n, uint8_t* tag, bool seal);

  const SrtpSuiteFacts* facts_ = nullptr;
  std::vector<uint8_t> master_;
  Keys rtp_, rtcp_;
  Source sources_[4];
  Source rtcp_sources_[4];
  uint32_t rtcp_index_ = 0;
  uint64_t uses_ = 0;
};

}  // namespace media
