// The receiving side of a stream's SRTP: the current key, the previous key while the peer may still use it, and how
// long authentication has failed.
//
// Thread: the packet thread of its stream. Memory: used only by packets of secured streams.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "config.h"
#include "srtp.h"

namespace media {

class SrtpReceiver {
 public:
  /** Takes over the negotiated key. The previous key stays valid for five seconds. */
  void describe(const StreamConfig& config, uint64_t now_us);
  SrtpResult unprotect(uint8_t* packet, size_t& n, uint64_t now_us);
  SrtpResult unprotect_rtcp(uint8_t* packet, size_t& n);

  /** Notes that a packet from the peer's address failed authentication. */
  void note_failure(uint64_t now_us) {
    if (!failing_since_us_) failing_since_us_ = now_us;
  }
  /** Reports, once for each key, that packets have failed for five seconds and none has succeeded. */
  bool has_failed(uint64_t now_us);

 private:
  std::unique_ptr<SrtpContext> now_, before_;
  uint64_t before_until_us_ = 0, failing_since_us_ = 0;
  bool told_ = false;
};

}  // namespace media
