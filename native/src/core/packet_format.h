// What an encoder must agree on to serve several streams at once.
#pragma once
#include <cstdint>

#include "../codec/codec.h"

namespace media {

/** The format of packets of 20 ms. `other` stands for one that streams do not share. Fits an atomic. */
struct PacketFormat {
  CodecId codec = CodecId::other;
  uint8_t khz = 0;  // of the encoder
  uint8_t complexity = 0;
  bool fec = false;
  int32_t bitrate = 0;

  bool operator==(const PacketFormat&) const = default;
  bool shared() const { return codec != CodecId::other; }
  EncoderOptions options() const { return {khz * 1000, 20, bitrate, complexity, fec, false}; }
};
static_assert(sizeof(PacketFormat) == 8);

}  // namespace media
