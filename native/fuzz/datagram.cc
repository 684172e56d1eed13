// Frames of the packet ring: what any host may send to one of our ports.
#include "../src/core/datagram.h"

#include <cstring>
#include <memory>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const bool verified : {true, false}) {
    // Exactly as long as it is, so that a byte read beyond it is found.
    const std::unique_ptr<uint8_t[]> frame(new uint8_t[size]);
    if (size) std::memcpy(frame.get(), data, size);
    media::Datagram d;
    if (!media::read_datagram(frame.get(), size, verified, d)) continue;
    const uint8_t* const end = frame.get() + size;
    if (d.payload < frame.get() + media::kDatagramHeader || d.payload > end) __builtin_trap();
    if (d.size > static_cast<size_t>(end - d.payload)) __builtin_trap();
  }
  return 0;
}
