// Turns generated audio into packets: resamples it to the codec's rate, encodes it and splits it into packets.
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
  /** Returns the encoder's rate in Hz. Audio at this rate needs no resampling. */
  int rate() const;
  /** Sends audio. Drops it when the stream may not send or has no encoder. */
  void take(const int16_t* pcm, int samples, int rate_hz, uint64_t now_us, Heard heard = Heard::sound);
  /** Drops the encoder. The next audio gets a new one. */
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
  size_t pause_samples_ = 0;  // the number of samples at the end of waiting_ that are the noise of a pause
  PauseReports pause_reports_;
};

}  // namespace media
