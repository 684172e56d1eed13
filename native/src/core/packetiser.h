// Audio that is made here, to packets: converted to the codec's rate, encoded, cut into packets.
//
// Thread: the packet thread of its stream. Memory: cold; only streams that transcode or play have an encoder.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "../codec/codec.h"
#include "comfort_noise.h"
#include "config.h"
#include "decode_path.h"
#include "resample.h"

namespace media {

class Stream;

class Packetiser {
 public:
  explicit Packetiser(Stream& stream) : stream_(stream) {}

  void describe(const StreamConfig& before, const StreamConfig& next);
  /** The rate that the encoder takes, so that who makes audio for it converts nothing twice. */
  int rate() const;
  /** Sends audio. Nothing when the stream may not send, or its codec is not here. */
  void take(const int16_t* pcm, int samples, int rate_hz, uint64_t now_us, Heard heard = Heard::sound);
  /** Makes a new encoder before the next audio. */
  void reset_encoder() { encoder_.reset(); }

 private:
  bool use_encoder();
  int packet_ms() const;
  void packetise(const int16_t* pcm, int samples, Heard heard, uint64_t now_us);
  void send_frame(size_t samples, uint64_t now_us);
  void tell_pause(size_t samples, uint64_t now_us);

  Stream& stream_;
  std::unique_ptr<Encoder> encoder_;
  CodecId codec_ = CodecId::other;
  EncoderOptions options_;
  std::unique_ptr<Resampler> resampler_;
  std::vector<int16_t> waiting_;
  size_t pause_samples_ = 0;  // at the end of waiting_: the noise of a pause
  PauseReports pause_reports_;
};

}  // namespace media
