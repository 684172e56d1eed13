// Copies of a stream's audio for the outside, in chunks of PCM.
//
// Thread: the packet thread of its stream. Memory: the list itself lies in the sender's lines, because each sent packet
// asks whether somebody listens.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "resample.h"

namespace media {

class Stream;

class Taps {
 public:
  /** Replaces a tap of the same id. Does nothing when the stream has its most already. */
  void add(std::string id, bool sent, int rate_hz, int chunk_ms);
  void remove(const std::string& id);
  bool any() const { return !taps_.empty(); }
  bool wants_sent() const { return wants(true); }
  bool wants_received() const { return wants(false); }
  /** The rate of the first wideband tap of received audio, or 0. */
  int wideband_rate() const;
  /** Takes audio of `of`, sent or received, and tells each chunk that is full. */
  void take(const Stream& of, bool sent, const int16_t* pcm, int samples, int rate_hz);

 private:
  struct Tap {
    std::string id;
    bool sent;
    int rate_hz;
    size_t chunk;
    std::vector<int16_t> held;
    std::unique_ptr<Resampler> resampler;
    uint64_t emitted = 0;
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
