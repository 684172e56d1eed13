// Decodes what a stream receives, for those who listen: a transcoding peer, a detector, taps, a conference.
//
// Thread: the packet thread of its stream, in a tick of 20 ms. Memory: cold; a stream that is only relayed has no
// decode path. The pointer to the path lies in the receiver's lines.
#pragma once
#include <cstdint>
#include <memory>

#include "decode_path.h"
#include "detect.h"
#include "resample.h"
#include "timer.h"

namespace media {

class Stream;

class Listening {
 public:
  explicit Listening(Stream& stream);

  void detect(bool inband, bool voice, bool tones, uint64_t now_us);
  /** Starts, changes or ends the decoding, after anything that it depends on has changed. */
  void update(uint64_t now_us);
  void stop();
  /** Whether somebody listens besides the peer. */
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
  std::unique_ptr<Resampler> to_detector_;
  bool inband_ = false, voice_ = false, tones_ = false;
  Timer timer_;
  uint64_t due_us_ = 0;
};

}  // namespace media
