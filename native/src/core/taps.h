// Copies of a stream's audio for JavaScript, in chunks of PCM.
//
// Thread: the packet thread of its stream. Memory: the list of taps is in the sender's cache lines, because each sent
// packet checks it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "noise_suppression.h"
#include "resample.h"

namespace media {

class Stream;

struct TapOptions {
  std::string id;
  bool sent = false;
  int rate_hz = 8000, chunk_ms = 20;
  /** Reduce steady noise; at 8 kHz only. */
  bool suppress_noise = false;
};

class Taps {
 public:
  /** Adds a tap, or replaces the tap with the same id. Does nothing when the stream has the maximum number of taps. */
  void add(TapOptions options, uint64_t now_us);
  void remove(const std::string& id);
  bool any() const { return !taps_.empty(); }
  bool wants_sent() const { return wants(true); }
  bool wants_received() const { return wants(false); }
  /** Returns the rate of the first wideband tap of received audio, or 0. */
  int wideband_rate() const;
  /** Takes audio that stream `of` sent or received. Reports each full chunk. */
  void take(const Stream& of, bool sent, const int16_t* pcm, int samples, int rate_hz);
  /** Nothing was sent for this long before what is sent now: the time of taps of sent audio goes on. */
  void pause(const Stream& of, uint64_t length_us, uint64_t now_us);

 private:
  struct Tap {
    std::string id;
    bool sent;
    int rate_hz;
    size_t chunk;
    std::vector<int16_t> held;
    std::unique_ptr<Resampler> resampler;
    std::unique_ptr<NoiseSuppression> quieter;
    uint64_t began_us;
    uint64_t emitted = 0;    // samples, with those of pauses
    uint64_t paused_us = 0;  // the rest of pauses, less than a chunk
  };
  bool wants(bool sent) const {
    for (const auto& t : taps_)
      if (t.sent == sent) return true;
    return false;
  }
  static void tell_chunk(const Stream& of, Tap& t);
  std::vector<Tap> taps_;
};

}  // namespace media
