// PCM of this machine as a codec, for audio that is recorded without ever having been a packet. SDP does not know it.
#include <cstring>

#include "codec.h"

namespace media {
namespace {

class SamplesIn final : public Decoder {
 public:
  explicit SamplesIn(int rate) : rate_(rate) {}
  int sample_rate() const override { return rate_; }
  int length(const uint8_t*, int bytes) const override { return bytes / 2; }
  int decode(const uint8_t* payload, int bytes, int16_t* out, int room) override {
    if (bytes / 2 > room) return -1;
    std::memcpy(out, payload, static_cast<size_t>(bytes / 2) * sizeof *out);
    return bytes / 2;
  }
  void conceal(int16_t* out, int samples, const uint8_t*, int) override {
    std::memset(out, 0, static_cast<size_t>(samples) * sizeof *out);
  }

 private:
  const int rate_;
};

}  // namespace

const Codec kSamples{CodecId::samples,
                     "SAMPLES",
                     0,
                     0,
                     [] { return true; },
                     [](const EncoderOptions&) -> std::unique_ptr<Encoder> { return nullptr; },
                     [](int rate) -> std::unique_ptr<Decoder> { return std::make_unique<SamplesIn>(rate); }};

}  // namespace media
