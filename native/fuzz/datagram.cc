// Fuzzes the parsing of packet ring frames, which any host can send to our ports.
#include "../src/core/datagram.h"

#include <cstring>
#include <memory>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const bool verified : {true, false}) {
    // Allocate exactly `size` bytes, so that the sanitizer finds a read beyond the end.
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
