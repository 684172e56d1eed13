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
#include "packet_format.h"
#include "resample.h"

namespace media {

class Stream;
struct Mix;

class Packetiser {
 public:
  explicit Packetiser(Stream& stream) : stream_(stream) {}

  void describe(const StreamConfig& before, const StreamConfig& next);
  /** Returns the encoder's rate in Hz. Audio at this rate needs no resampling. */
  int rate() const;
  /** Sends audio. Drops it when the stream may not send or has no encoder. */
  void take(const int16_t* pcm, int samples, int rate_hz, uint64_t now_us, Heard heard = Heard::sound);
  /** Returns the format of the packets, when an encoder for several streams can make them. */
  PacketFormat format() const;
  /** Sends 20 ms of a conference: the packet of a shared encoder when it fits, otherwise the audio. */
  void take_mix(const Mix& mix, int rate_hz, uint64_t now_us);
  /** Sends 20 ms of an idle stream's silence. */
  void fill_idle(uint64_t now_us);
  /** Drops the encoder. The next audio gets a new one. */
  void reset_encoder() {
    encoder_.reset();
    end_idle();
  }

 private:
  bool use_encoder();
  int packet_ms() const;
  void begin(uint64_t now_us);
  void packetise(const int16_t* pcm, int samples, Heard heard, uint64_t now_us);
  Heard next_frame() const { return tail_samples_ >= waiting_.size() ? tail_ : Heard::sound; }
  int encode(size_t samples, uint8_t* out);
  void send_frame(size_t samples, uint64_t now_us);
  void tell_pause(size_t samples, uint64_t now_us);
  void send_silence(size_t samples, uint64_t now_us);
  void send_settled(uint64_t now_us);
  void end_idle() {
    idle_frames_ = 0;
    silence_.clear();
  }

  Stream& stream_;
  std::unique_ptr<Encoder> encoder_;
  CodecId codec_ = CodecId::other;
  EncoderOptions options_;
  std::unique_ptr<Resampler> resampler_;
  std::vector<int16_t> waiting_;
  Heard tail_ = Heard::sound;  // what the last samples of waiting_ are
  size_t tail_samples_ = 0;    // the number of those samples
  PauseReports pause_reports_;
  int idle_frames_ = 0;           // packets of silence since the last sound
  std::vector<uint8_t> silence_;  // the payload of the settled encoder
};

}  // namespace media
