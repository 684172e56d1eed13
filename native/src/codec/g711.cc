// PCMU and PCMA (ITU-T G.711).
#include "g711.h"

#include <cstring>

#include "codec.h"
#include "conceal.h"

namespace media {
namespace {

int16_t expand_ulaw(uint8_t code) {
  code = static_cast<uint8_t>(~code);
  const int magnitude = (((code & 0x0f) << 3) + 0x84) << ((code & 0x70) >> 4);
  return static_cast<int16_t>(code & 0x80 ? 0x84 - magnitude : magnitude - 0x84);
}

int16_t expand_alaw(uint8_t code) {
  code ^= 0x55;
  const int segment = (code & 0x70) >> 4;
  int magnitude = ((code & 0x0f) << 4) + 8;
  if (segment >= 1) magnitude = (magnitude + 0x100) << (segment - 1);
  return static_cast<int16_t>(code & 0x80 ? magnitude : -magnitude);
}

uint8_t compress_ulaw(int sample) {
  const int sign = sample < 0 ? 0x80 : 0;
  // The complement: a negative sample on the border of two segments takes the nearer code.
  int magnitude = sample < 0 ? ~sample : sample;
  magnitude = (magnitude > 32635 ? 32635 : magnitude) + 0x84;
  int segment = 7;
  while (segment > 0 && !(magnitude & (0x80 << segment))) --segment;
  return static_cast<uint8_t>(~(sign | segment << 4 | ((magnitude >> (segment + 3)) & 0x0f)));
}

uint8_t compress_alaw(int sample) {
  const int sign = sample < 0 ? 0 : 0x80;
  // G.711 encodes the complement of a negative sample, so that -1 falls into the first step below zero.
  int magnitude = (sample < 0 ? ~sample : sample) >> 4;
  int segment = 0;
  if (magnitude > 15) {
    segment = 1;
    while (magnitude > 31) {
      magnitude >>= 1;
      ++segment;
    }
  }
  return static_cast<uint8_t>((sign | segment << 4 | (magnitude & 0x0f)) ^ 0x55);
}

G711Tables make_tables() {
  G711Tables t{};
  for (int i = 0; i < 256; ++i) {
    t.from_ulaw[static_cast<size_t>(i)] = expand_ulaw(static_cast<uint8_t>(i));
    t.from_alaw[static_cast<size_t>(i)] = expand_alaw(static_cast<uint8_t>(i));
  }
  for (int i = 0; i < 65536; ++i) {
    t.to_ulaw[static_cast<size_t>(i)] = compress_ulaw(static_cast<int16_t>(i));
    t.to_alaw[static_cast<size_t>(i)] = compress_alaw(static_cast<int16_t>(i));
  }
  for (size_t i = 0; i < 256; ++i) {
    t.ulaw_to_alaw[i] = t.to_alaw[static_cast<uint16_t>(t.from_ulaw[i])];
    t.alaw_to_ulaw[i] = t.to_ulaw[static_cast<uint16_t>(t.from_alaw[i])];
  }
  return t;
}

class G711Encoder final : public Encoder {
 public:
  explicit G711Encoder(const std::array<uint8_t, 65536>& table) : table_(table) {}
  int sample_rate() const override { return 8000; }
  int encode(const int16_t* pcm, int samples, uint8_t* out, int room) override {
    if (samples > room) return -1;
    for (int i = 0; i < samples; ++i) out[i] = table_[static_cast<uint16_t>(pcm[i])];
    return samples;
  }

 private:
  const std::array<uint8_t, 65536>& table_;
};

class G711Decoder final : public Decoder {
 public:
  explicit G711Decoder(const std::array<int16_t, 256>& table) : table_(table) {}
  int sample_rate() const override { return 8000; }
  int length(const uint8_t*, int bytes) const override { return bytes; }
  int decode(const uint8_t* payload, int bytes, int16_t* out, int room) override {
    if (bytes > room) return -1;
    int i = 0;
    for (; i + 4 <= bytes; i += 4) {
      const int16_t four[4] = {table_[payload[i]], table_[payload[i + 1]], table_[payload[i + 2]], table_[payload[i + 3]]};
      std::memcpy(out + i, four, sizeof four);
    }
    for (; i < bytes; ++i) out[i] = table_[payload[i]];
    concealer_.heard(out, bytes);
    return bytes;
  }
  void conceal(int16_t* out, int samples, const uint8_t*, int) override { concealer_.conceal(out, samples); }

 private:
  const std::array<int16_t, 256>& table_;
  Concealer concealer_{8000};
};

bool always() {
  return true;
}

}  // namespace

const G711Tables& g711() {
  static const G711Tables tables = make_tables();
  return tables;
}

const Codec kPcmu{
    CodecId::pcmu,
    "PCMU",
    8000,
    8000,
    always,
    [](const EncoderOptions&) -> std::unique_ptr<Encoder> { return std::make_unique<G711Encoder>(g711().to_ulaw); },
    [](int) -> std::unique_ptr<Decoder> { return std::make_unique<G711Decoder>(g711().from_ulaw); }};
const Codec kPcma{
    CodecId::pcma,
    "PCMA",
    8000,
    8000,
    always,
    [](const EncoderOptions&) -> std::unique_ptr<Encoder> { return std::make_unique<G711Encoder>(g711().to_alaw); },
    [](int) -> std::unique_ptr<Decoder> { return std::make_unique<G711Decoder>(g711().from_alaw); }};

}  // namespace media
