// The receiving side of a stream's SRTP: the key, the key before it while the peer may still use that, and how long
// packets have failed.
//
// Thread: the packet thread of its stream. Memory: touched by packets of secured streams only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "config.h"
#include "srtp.h"

namespace media {

class SrtpReceiver {
 public:
  /** Takes over the key that was negotiated. The key before stays valid for five seconds. */
  void describe(const StreamConfig& config, uint64_t now_us);
  SrtpResult unprotect(uint8_t* packet, size_t& n, uint64_t now_us);
  SrtpResult unprotect_rtcp(uint8_t* packet, size_t& n);

  /** A packet that the peer must have sent could not be authenticated. */
  void note_failure(uint64_t now_us) {
    if (!failing_since_us_) failing_since_us_ = now_us;
  }
  /** True once for each key: packets have failed for five seconds, and none has succeeded. */
  bool has_failed(uint64_t now_us);

 private:
  std::unique_ptr<SrtpContext> now_, before_;
  uint64_t before_until_us_ = 0, failing_since_us_ = 0;
  bool told_ = false;
};

}  // namespace media
