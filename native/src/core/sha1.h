// HMAC-SHA1 that hashes the key's two blocks once, so that each packet needs only its own hash.
#pragma once
// Only the low-level calls can keep and copy a partial hash without allocating. The build defines
// OPENSSL_SUPPRESS_DEPRECATED for them.
#include <openssl/sha.h>

#include <cstddef>
#include <cstdint>

namespace media {

class HmacSha1 {
 public:
  void set_key(const uint8_t* key, size_t bytes) {
    uint8_t block[64];
    for (size_t i = 0; i < 64; ++i) block[i] = static_cast<uint8_t>((i < bytes ? key[i] : 0) ^ 0x36);
    SHA1_Init(&inner_);
    SHA1_Update(&inner_, block, 64);
    for (auto& b : block) b = static_cast<uint8_t>(b ^ 0x36 ^ 0x5c);
    SHA1_Init(&outer_);
    SHA1_Update(&outer_, block, 64);
  }

  /** Signs `data` followed by `tail`, which may be empty. */
  void sign(const uint8_t* data, size_t n, const uint8_t* tail, size_t tail_bytes, uint8_t out[20]) const {
    SHA_CTX c = inner_;
    SHA1_Update(&c, data, n);
    if (tail_bytes) SHA1_Update(&c, tail, tail_bytes);
    uint8_t digest[20];
    SHA1_Final(digest, &c);
    c = outer_;
    SHA1_Update(&c, digest, 20);
    SHA1_Final(out, &c);
  }

 private:
  SHA_CTX inner_{}, outer_{};
};

}  // namespace media
