// Codecs as they convert samples. core/domain/codecs/<name>.ts describes them in SDP. To add one, add a file here and a
// line in registry.cc.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace media {

enum class CodecId : uint8_t { other, pcmu, pcma, g722, g729, opus };

/** The longest frame that is decoded at once: 120 ms (Opus) at 48 kHz. */
constexpr int kMaxFrameSamples = 5760;

struct EncoderOptions {
  int sample_rate = 0;  // 0: the codec's own
  int ptime_ms = 20;
  int bitrate = 0;
  int complexity = 5;
  bool fec = false, dtx = false;
};

class Encoder {
 public:
  virtual ~Encoder() = default;
  /** The rate of the PCM that it takes, in Hz. */
  virtual int sample_rate() const = 0;
  /** Returns the bytes written, 0 when this frame is not sent (DTX), or less for a frame length that the codec lacks.
   */
  virtual int encode(const int16_t* pcm, int samples, uint8_t* out, int room) = 0;
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual int sample_rate() const = 0;
  /** Returns the samples written, or less than 0 when the payload cannot be decoded. */
  virtual int decode(const uint8_t* payload, int bytes, int16_t* out, int room) = 0;
  /** Returns the samples that the payload holds, without decoding it, or less than 0 when it cannot be decoded. */
  virtual int length(const uint8_t* payload, int bytes) const = 0;
  /** Fills a loss of so many samples. `next` is the packet after it, which may carry the lost one too (Opus FEC). */
  virtual void conceal(int16_t* out, int samples, const uint8_t* next, int next_bytes) = 0;
  /** What a packet tells, for codecs with silence of their own (DTX). After `no_voice` and `silence` the sender may
   * pause, and `conceal` then gives the noise of that pause. `silence` holds nothing else. */
  enum class Tells : uint8_t { voice, no_voice, silence };
  virtual Tells tells(const uint8_t*, int) const { return Tells::voice; }
};

struct Codec {
  CodecId id;
  const char* name;
  int clock_rate;
  int sample_rate;
  /** Whether this machine has the codec. */
  bool (*available)();
  std::unique_ptr<Encoder> (*encoder)(const EncoderOptions&);
  std::unique_ptr<Decoder> (*decoder)(int sample_rate);
};

/** All codecs, in the order of the registry. */
const std::vector<Codec>& codecs();
/** Finds a codec by encoding name and clock rate. Null for one that is only relayed. */
const Codec* find_codec(const std::string& name, int clock_rate);
const Codec* find_codec(CodecId id);

// One each, in its own file.
extern const Codec kPcmu, kPcma, kG722, kG729, kOpus;

/** Opens G.729's library, once, before any codec is made. False when the machine has none or it is not wanted. */
bool open_g729(bool wanted);

}  // namespace media
