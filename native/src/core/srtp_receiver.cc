#include "srtp_receiver.h"

#include <cstring>
#include <utility>

#include "rtp.h"

namespace media {

namespace {
constexpr uint64_t kOldKeyUs = 5'000'000;
constexpr uint64_t kFailedUs = 5'000'000;
}  // namespace

void SrtpReceiver::describe(const StreamConfig& config, uint64_t now_us) {
  if (!config.secured) {
    // The peer may come back with its keys, and counts on (RFC 3711 §3.3.1).
    failing_since_us_ = 0;
    return;
  }
  if (now_ && now_->same_key(config.suite, config.receive_key.data(), config.receive_key.size())) return;
  before_ = std::move(now_);
  before_until_us_ = now_us + kOldKeyUs;
  now_ = SrtpContext::make(config.suite, config.receive_key.data(), config.receive_key.size());
  failing_since_us_ = 0;
  told_ = false;
}

SrtpResult SrtpReceiver::unprotect(uint8_t* packet, size_t& n, uint64_t now_us) {
  SrtpResult result = now_ ? now_->unprotect(packet, n) : SrtpResult::auth_failed;
  // The peer may use the previous key until it has our answer.
  if (before_) {
    if (now_ && result == SrtpResult::auth_failed) result = now_->unprotect_after(*before_, packet, n);
    if (result == SrtpResult::ok) {
      before_.reset();
    } else {
      result = before_->unprotect(packet, n);
      if (now_us > before_until_us_) before_.reset();
    }
  }
  if (result == SrtpResult::ok) failing_since_us_ = 0;
  return result;
}

SrtpResult SrtpReceiver::unprotect_rtcp(uint8_t* packet, size_t& n) {
  uint8_t copy[kMaxPacket];
  size_t size = n;
  std::memcpy(copy, packet, n);
  SrtpResult result = now_ ? now_->unprotect_rtcp(packet, n) : SrtpResult::auth_failed;
  if (result == SrtpResult::auth_failed && before_) {
    result = before_->unprotect_rtcp(copy, size);
    std::memcpy(packet, copy, size);
    n = size;
  }
  return result;
}

bool SrtpReceiver::has_failed(uint64_t now_us) {
  if (!failing_since_us_ || told_ || now_us - failing_since_us_ < kFailedUs) return false;
  told_ = true;
  return true;
}

}  // namespace media
