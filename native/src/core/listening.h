// Decodes the audio that a stream receives, for its consumers: a transcoding peer, a detector, taps, a conference.
//
// Thread: the packet thread of its stream, every 20 ms. Memory: cold; a relayed stream has no decode path. The
// receiver's cache lines hold the pointer to the path.
#pragma once
#include <cstdint>
#include <memory>

#include "decode_path.h"
#include "detect.h"
#include "resample.h"
#include "rtp.h"
#include "speech_watch.h"
#include "timer.h"

namespace media {

class Stream;

class Listening {
 public:
  explicit Listening(Stream& stream);

  void detect(bool inband, bool voice, bool tones, uint64_t now_us);
  /** Reports the peer's speech, or no longer (null). */
  void watch_speech(const SpeechWatchOptions* options, uint64_t now_us);
  /** Takes a packet of audio when it arrives, before the jitter buffer. */
  void arrived(const RtpView& v, CodecId codec, const uint8_t* payload, uint64_t now_us) {
    if (watch_) watch_->packet(v.ssrc, v.seq, codec, payload, v.payload, now_us);
  }
  /** Starts, adjusts or ends decoding. Call it after any change of the stream's consumers or configuration. */
  void update(uint64_t now_us);
  /** Decodes packets that the peer does not take in their length, although it takes their format. */
  void repack(uint64_t now_us) {
    repacks_ = true;
    update(now_us);
  }
  void stop();
  /** Reports whether anything besides the peer consumes the audio. */
  bool is_heard() const;

 private:
  bool detects() const { return inband_ || voice_ || tones_; }
  bool is_needed() const;
  int rate() const;
  void tick(uint64_t now_us);
  void hear(const int16_t* pcm, int samples, uint64_t now_us);
  void transcode(const int16_t* pcm, int samples, int rate_hz, Heard heard, uint64_t now_us);

  Stream& stream_;
  std::unique_ptr<Detector> detector_;
  std::unique_ptr<SpeechWatch> watch_;
  std::unique_ptr<Resampler> to_detector_;
  bool inband_ = false, voice_ = false, tones_ = false, repacks_ = false;
  Timer timer_;
  uint64_t due_us_ = 0;
};

}  // namespace media
