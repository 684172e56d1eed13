// Encoders and decoders of the codecs; core/domain/codecs/<name>.ts describes each codec in SDP. To add a codec, add a
// file here and a line in registry.cc.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace media {

/** `samples` is PCM of this machine, which no peer can negotiate. */
enum class CodecId : uint8_t { other, pcmu, pcma, g722, g729, opus, samples };

/** The longest frame that a decoder produces: 120 ms of Opus at 48 kHz. */
constexpr int kMaxFrameSamples = 5760;
/** The longest payload that an encoder is given room for. */
constexpr int kMostEncoded = 1400;

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
  /** The rate of the PCM that the encoder takes, in Hz. */
  virtual int sample_rate() const = 0;
  /** Returns the bytes written, 0 when DTX suppresses the frame, or a negative number for an invalid frame length. */
  virtual int encode(const int16_t* pcm, int samples, uint8_t* out, int room) = 0;
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual int sample_rate() const = 0;
  /** Returns the samples written, or a negative number when the payload cannot be decoded. */
  virtual int decode(const uint8_t* payload, int bytes, int16_t* out, int room) = 0;
  /** Returns the samples in the payload without decoding it, or a negative number when it cannot be decoded. */
  virtual int length(const uint8_t* payload, int bytes) const = 0;
  /** Conceals the loss of `samples` samples. `next` is the packet after the loss; it may repeat the lost audio (Opus
   * FEC). */
  virtual void conceal(int16_t* out, int samples, const uint8_t* next, int next_bytes) = 0;
  /** What a packet of a codec with DTX contains. After a `no_voice` or `silence` packet the sender may pause, and
   * `conceal` then produces the noise of that pause. A `silence` packet contains no audio. */
  enum class Tells : uint8_t { voice, no_voice, silence };
  virtual Tells tells(const uint8_t*, int) const { return Tells::voice; }
};

struct Codec {
  CodecId id;
  const char* name;
  int clock_rate;
  int sample_rate;
  /** Reports whether this machine has the codec. */
  bool (*available)();
  std::unique_ptr<Encoder> (*encoder)(const EncoderOptions&);
  std::unique_ptr<Decoder> (*decoder)(int sample_rate);
};

/** Returns all codecs in the order of the registry. */
const std::vector<Codec>& codecs();
/** Finds a codec by encoding name and clock rate. Null when the engine can only relay it. */
const Codec* find_codec(const std::string& name, int clock_rate);
const Codec* find_codec(CodecId id);

// Each codec is defined in its own file.
extern const Codec kPcmu, kPcma, kG722, kG729, kOpus, kSamples;

/** Loads the G.729 library. Call it once, before creating any codec. False when the machine has none, or `wanted` is
 * false. */
bool open_g729(bool wanted);

}  // namespace media
