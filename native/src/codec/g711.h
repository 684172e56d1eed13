// Tables of G.711: expansion, compression, and direct conversion between the two laws.
#pragma once
#include <array>
#include <cstdint>

namespace media {

struct G711Tables {
  std::array<int16_t, 256> from_ulaw, from_alaw;
  std::array<uint8_t, 65536> to_ulaw, to_alaw;  // index: the sample as uint16_t
  std::array<uint8_t, 256> ulaw_to_alaw, alaw_to_ulaw;
};

const G711Tables& g711();

}  // namespace media
