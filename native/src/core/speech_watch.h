// Hears in each packet, as it arrives, whether the peer speaks, and stops a feed that yields to the peer's voice. The
// jitter buffer before taps and detectors delays by 40 ms and more, and JavaScript by its queue.
//
// Thread: the packet thread of its stream. Memory: cold; only a decoded stream reaches it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "../codec/codec.h"
#include "noise_suppression.h"
#include "resample.h"

namespace media {

class Stream;

/** Tells the beginning and end of speech in steps of 10 ms at 8 kHz. A voiced step stands above the noise of the line
 * and has the spectrum of a vowel rather than of noise. */
class SpeechEdges {
 public:
  static constexpr int kStep = 80, kStepMs = 10;
  enum class Edge : uint8_t { none, began, voiced, paused, resumed, ended };
  /** Returns the name of an edge that is reported; null for the others. */
  static const char* name(Edge edge);
  /** Reports whether the peer's voice is heard in a step, in speech. */
  static bool is_voice(Edge e) { return e == Edge::began || e == Edge::voiced || e == Edge::resumed; }

  /** Speech begins when four of five steps are voiced, of as many as hold `onset_ms` of voice. It ends after `end_ms`
   * without one. */
  SpeechEdges(int onset_ms, int end_ms)
      : needed_(onset_ms / kStepMs), among_(needed_ + needed_ / 4), end_steps_(end_ms / kStepMs) {}

  /** Takes a step; null for one that did not arrive. `voiced`: the speech that has begun goes on. */
  Edge take(const int16_t* step);
  int quiet_ms() const { return quiet_ * kStepMs; }

 private:
  bool voiced(const int16_t* step);

  const int needed_, among_, end_steps_;
  double noise_db_ = -60;
  int16_t last_ = 0;
  uint64_t recent_ = 0;  // a bit for each of the last steps; 1 is voiced
  int quiet_ = 0;
  bool speaking_ = false, paused_ = false;
};

struct SpeechWatchOptions {
  /** The voice that begins speech, up to 320 ms, and the silence that ends it. */
  int onset_ms = 40, end_ms = 600;
  bool suppress_noise = false;
};

/** Hears one side of a line in frames of 20 ms at 8 kHz: reduces its noise where that is asked for, and finds speech. */
class Hearing {
 public:
  static constexpr int kFrame = NoiseSuppression::kFrame, kSteps = kFrame / SpeechEdges::kStep;
  using Edges = std::array<SpeechEdges::Edge, kSteps>;

  explicit Hearing(const SpeechWatchOptions& options);
  /** Takes a frame, writes it as it is judged to `clean`, and returns what each of its steps was. */
  Edges take(const int16_t* frame, int16_t* clean);
  /** Takes a frame that did not arrive. */
  Edges miss();
  int quiet_ms() const { return edges_.quiet_ms(); }

 private:
  SpeechEdges edges_;
  std::unique_ptr<NoiseSuppression> quieter_;
};

class SpeechWatch {
 public:
  SpeechWatch(Stream& stream, const SpeechWatchOptions& options, uint64_t now_us);

  /** Takes the audio of a packet when it arrives. Skips one that comes after a later one. */
  void packet(uint32_t ssrc, uint16_t seq, CodecId codec, const uint8_t* payload, size_t bytes, uint64_t now_us);
  /** Takes silence for the audio that does not arrive, because the peer pauses. Call it every 20 ms. */
  void tick(uint64_t now_us);

 private:
  bool use_codec(CodecId id);
  void take(const int16_t* pcm, int samples);
  void tell(const Hearing::Edges& edges);

  Stream& stream_;
  Hearing hearing_;
  const Codec* codec_ = nullptr;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<Resampler> resampler_;
  std::array<int16_t, Hearing::kFrame> held_{};
  size_t holds_ = 0;
  bool any_ = false;
  uint32_t ssrc_ = 0;
  uint16_t seq_ = 0;
  uint64_t heard_us_;
};

}  // namespace media
