// OPUS (RFC 6716, RFC 7587). The codec runs at any of its sample rates; its RTP clock always runs at 48000 Hz.
#include <opus.h>

#include "codec.h"

namespace media {
namespace {

class OpusOut final : public Encoder {
 public:
  explicit OpusOut(const EncoderOptions& o) : rate_(o.sample_rate ? o.sample_rate : 48000) {
    int error = 0;
    state_ = opus_encoder_create(rate_, 1, OPUS_APPLICATION_VOIP, &error);
    if (!state_) return;
    opus_encoder_ctl(state_, OPUS_SET_COMPLEXITY(o.complexity));
    opus_encoder_ctl(state_, OPUS_SET_BITRATE(o.bitrate       ? o.bitrate
                                              : rate_ > 16000 ? 32000
                                              : rate_ > 8000  ? 24000
                                                              : 16000));
    opus_encoder_ctl(state_, OPUS_SET_SIGNAL(OPUS_SIGNAL_VOICE));
    opus_encoder_ctl(state_, OPUS_SET_INBAND_FEC(o.fec ? 1 : 0));
    opus_encoder_ctl(state_, OPUS_SET_PACKET_LOSS_PERC(o.fec ? 10 : 0));
    opus_encoder_ctl(state_, OPUS_SET_DTX(o.dtx ? 1 : 0));
    dtx_ = o.dtx;
  }
  ~OpusOut() override {
    if (state_) opus_encoder_destroy(state_);
  }
  int sample_rate() const override { return rate_; }
  int encode(const int16_t* pcm, int samples, uint8_t* out, int room) override {
    if (!state_) return -1;
    const int bytes = opus_encode(state_, pcm, samples, out, room);
    const bool silence = dtx_ && bytes >= 0 && bytes <= 2;
    const bool told = silence && silent_;
    silent_ = silence;
    // Send the first empty frame: it lets the receiver tell the silence from a loss.
    return told ? 0 : bytes;
  }

 private:
  const int rate_;
  OpusEncoder* state_ = nullptr;
  bool dtx_ = false, silent_ = false;
};

class OpusIn final : public Decoder {
 public:
  explicit OpusIn(int rate) : rate_(rate ? rate : 48000) {
    int error = 0;
    state_ = opus_decoder_create(rate_, 1, &error);
  }
  ~OpusIn() override {
    if (state_) opus_decoder_destroy(state_);
  }
  int sample_rate() const override { return rate_; }
  int length(const uint8_t* payload, int bytes) const override {
    return bytes < 1 ? -1 : opus_packet_get_nb_samples(payload, bytes, rate_);
  }
  int decode(const uint8_t* payload, int bytes, int16_t* out, int room) override {
    if (!state_ || bytes < 1) return -1;
    return opus_decode(state_, payload, bytes, out, room, 0);
  }
  void conceal(int16_t* out, int samples, const uint8_t* next, int next_bytes) override {
    // Opus conceals in steps of 2.5 ms. The remaining samples are silent.
    const int step = rate_ / 400, whole = samples / step * step;
    int made = whole > 0 && state_ ? opus_decode(state_, next, next ? next_bytes : 0, out, whole, next ? 1 : 0) : 0;
    for (made = made < 0 ? 0 : made; made < samples; ++made) out[made] = 0;
  }
  /** A payload of at most two bytes is DTX (RFC 6716 §3.1). In others, SILK begins with its voice flags (§4.2.3). */
  Tells tells(const uint8_t* payload, int bytes) const override {
    if (bytes <= 2) return Tells::silence;
    const bool one_frame = (payload[0] & 3) == 0, celt_only = (payload[0] & 0x80) != 0;
    if (!one_frame || celt_only) return Tells::voice;
    // SILK frames of 40 and 60 ms (configurations 2, 3, 6, 7, 10 and 11) have two and three flags, all others one.
    const int config = payload[0] >> 3, flags = config >= 12 || config % 4 < 2 ? 1 : config % 4;
    return payload[1] >> (8 - flags) ? Tells::voice : Tells::no_voice;
  }

 private:
  const int rate_;
  OpusDecoder* state_ = nullptr;
};

}  // namespace

const Codec kOpus{CodecId::opus,
                  "OPUS",
                  48000,
                  48000,
                  [] { return true; },
                  [](const EncoderOptions& o) -> std::unique_ptr<Encoder> { return std::make_unique<OpusOut>(o); },
                  [](int rate) -> std::unique_ptr<Decoder> { return std::make_unique<OpusIn>(rate); }};

}  // namespace media
