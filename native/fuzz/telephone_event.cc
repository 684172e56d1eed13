// Fuzzes telephone events: an input must not produce more keys than it has packets.
#include "../src/core/telephone_event.h"
#include "../src/core/bytes.h"

using namespace media;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  KeyReceiver receiver;
  KeyReceiver::Key key;
  uint64_t now = 0;
  size_t told = 0, packets = 0;
  for (; size >= 8; data += 8, size -= 8, ++packets) {
    TelephoneEvent e;
    if (!parse_telephone_event(data, 4, e)) __builtin_trap();
    now += get16(data + 6) * 10u;
    if (receiver.take(e, get32(data + 4), data[7] & 1 ? 8000 : 48000, now, key)) ++told;
    if (receiver.expire(now + 100'000, key)) ++told;
  }
  if (told > packets + 1) __builtin_trap();
  return 0;
}
