// GSM 06.10 in files of 8 kHz. Calls do not negotiate it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace media {

enum class GsmPacking : uint8_t {
  frames,  // 33 bytes for 20 ms, as in RTP (RFC 3551 §4.5.8) and .gsm files
  wav49,   // 65 bytes for 40 ms, as in WAV files
};

/** Decodes whole blocks. A cut block at the end is left out. */
std::vector<int16_t> decode_gsm(const uint8_t* bytes, size_t n, GsmPacking packing);

}  // namespace media
