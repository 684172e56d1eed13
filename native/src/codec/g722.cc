// G722 at 64 kbit/s (spandsp). Its RTP clock runs at 8000 Hz although it carries 16 kHz audio (RFC 3551 §4.5.2).
#include <spandsp.h>

#include "codec.h"
#include "conceal.h"

namespace media {
namespace {

class G722Encoder final : public Encoder {
 public:
  G722Encoder() : state_(g722_encode_init(nullptr, 64000, 0)) {}
  ~G722Encoder() override { g722_encode_free(state_); }
  int sample_rate() const override { return 16000; }
  int encode(const int16_t* pcm, int samples, uint8_t* out, int room) override {
    if (samples / 2 > room) return -1;
    return g722_encode(state_, out, pcm, samples);
  }

 private:
  g722_encode_state_t* state_;
};

class G722Decoder final : public Decoder {
 public:
  G722Decoder() : state_(g722_decode_init(nullptr, 64000, 0)) {}
  ~G722Decoder() override { g722_decode_free(state_); }
  int sample_rate() const override { return 16000; }
  int length(const uint8_t*, int bytes) const override { return bytes * 2; }
  int decode(const uint8_t* payload, int bytes, int16_t* out, int room) override {
    if (bytes * 2 > room) return -1;
    const int samples = g722_decode(state_, out, payload, bytes);
    concealer_.heard(out, samples);
    return samples;
  }
  void conceal(int16_t* out, int samples, const uint8_t*, int) override { concealer_.conceal(out, samples); }

 private:
  g722_decode_state_t* state_;
  Concealer concealer_{16000};
};

}  // namespace

const Codec kG722{CodecId::g722,
                  "G722",
                  8000,
                  16000,
                  [] { return true; },
                  [](const EncoderOptions&) -> std::unique_ptr<Encoder> { return std::make_unique<G722Encoder>(); },
                  [](int) -> std::unique_ptr<Decoder> { return std::make_unique<G722Decoder>(); }};

}  // namespace media
