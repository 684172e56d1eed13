#include "codec.h"

namespace media {

const std::vector<Codec>& codecs() {
  static const std::vector<Codec> all{kPcmu, kPcma, kG722, kG729, kOpus};
  return all;
}

const Codec* find_codec(const std::string& name, int clock_rate) {
  for (const auto& c : codecs())
    if (name == c.name && clock_rate == c.clock_rate) return &c;
  return nullptr;
}

const Codec* find_codec(CodecId id) {
  if (id == CodecId::samples) return &kSamples;
  for (const auto& c : codecs())
    if (c.id == id) return &c;
  return nullptr;
}

}  // namespace media
