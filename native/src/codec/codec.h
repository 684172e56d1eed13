// The samples' face of a codec. Its SDP face is core/domain/codecs/<name>.ts. Adding one: a file here and a line in
// registry.cc.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace media {

enum class CodecId : uint8_t { other, pcmu, pcma, g722, g729, opus };

/** Longest frame that is decoded at once: 120 ms (Opus) at 48 kHz. */
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
  /** Of the PCM that it takes, Hz. */
  virtual int sample_rate() const = 0;
  /** Bytes written; 0: nothing to be sent for this frame (DTX); negative: a frame length that the codec does not have.
   */
  virtual int encode(const int16_t* pcm, int samples, uint8_t* out, int room) = 0;
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual int sample_rate() const = 0;
  /** Samples written; negative when the payload cannot be decoded. */
  virtual int decode(const uint8_t* payload, int bytes, int16_t* out, int room) = 0;
  /** Samples that the payload holds, known without decoding; negative when it cannot be decoded. */
  virtual int length(const uint8_t* payload, int bytes) const = 0;
  /** Fills a loss of so many samples. `next` is the packet after it, for codecs that carry the lost one in it (Opus
   * FEC). */
  virtual void conceal(int16_t* out, int samples, const uint8_t* next, int next_bytes) = 0;
  /** Of a packet, for codecs that have silence of their own (DTX): after `no_voice` and `silence` the sender may pause,
   * and what `conceal` gives is the noise of that pause; `silence` holds nothing else. */
  enum class Tells : uint8_t { voice, no_voice, silence };
  virtual Tells tells(const uint8_t*, int) const { return Tells::voice; }
};

struct Codec {
  CodecId id;
  const char* name;
  int clock_rate;
  int sample_rate;
  /** Whether this machine can do it now. */
  bool (*available)();
  std::unique_ptr<Encoder> (*encoder)(const EncoderOptions&);
  std::unique_ptr<Decoder> (*decoder)(int sample_rate);
};

/** All codecs, in the order of the registry. */
const std::vector<Codec>& codecs();
/** By encoding name and clock rate; null for one that is only relayed. */
const Codec* find_codec(const std::string& name, int clock_rate);
const Codec* find_codec(CodecId id);

// One each, in its own file.
extern const Codec kPcmu, kPcma, kG722, kG729, kOpus;

/** G.729's library is opened once, before any codec is made; false when the machine has none or it is not wanted. */
bool open_g729(bool wanted);

}  // namespace media
