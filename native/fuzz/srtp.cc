// Fuzzes secured streams: a packet that was not sealed with the key must not pass.
#include <cstring>
#include <memory>
#include <vector>

#include "../src/core/srtp.h"

using namespace media;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static std::vector<std::unique_ptr<SrtpContext>> contexts = [] {
    std::vector<std::unique_ptr<SrtpContext>> all;
    for (const auto& s : srtp_suites()) {
      const std::vector<uint8_t> key(s.key_bytes + s.salt_bytes, 42);
      all.push_back(SrtpContext::make(s.suite, key.data(), key.size()));
    }
    return all;
  }();
  for (auto& context : contexts) {
    std::vector<uint8_t> copy(data, data + size);
    size_t n = size;
    if (context->unprotect(copy.data(), n) == SrtpResult::ok) __builtin_trap();
    copy.assign(data, data + size);
    n = size;
    if (context->unprotect_rtcp(copy.data(), n) == SrtpResult::ok) __builtin_trap();
  }
  return 0;
}
