// G729 (Annexes A and B) through libbcg729. The library is GPL-3, so we neither link nor ship it: we load it at run
// time when the operator's machine has it. The declarations below are our own description of its functions.
#include <dlfcn.h>

#include <atomic>

#include "codec.h"

namespace media {
namespace {

struct Library {
  void* (*encoder_open)(uint8_t vad);
  void (*encoder_close)(void*);
  void (*encode)(void*, const int16_t in[80], uint8_t out[10], uint8_t* out_bytes);
  void* (*decoder_open)();
  void (*decoder_close)(void*);
  void (*decode)(void*, const uint8_t* in, uint8_t in_bytes, uint8_t erased, uint8_t sid, uint8_t rfc3389,
                 int16_t out[80]);
};

Library library;
std::atomic<bool> usable{false};

class G729Encoder final : public Encoder {
 public:
  explicit G729Encoder(bool dtx) : state_(library.encoder_open(dtx ? 1 : 0)) {}
  ~G729Encoder() override { library.encoder_close(state_); }
  int sample_rate() const override { return 8000; }
  int encode(const int16_t* pcm, int samples, uint8_t* out, int room) override {
    if (samples % 80 != 0 || samples / 8 > room) return -1;
    int bytes = 0;
    for (int at = 0; at < samples; at += 80) {
      uint8_t n = 0;
      library.encode(state_, pcm + at, out + bytes, &n);
      bytes += n;
      // RFC 3551 §4.5.6: a two-byte silence frame is the last of its packet. The encoder still takes the rest of the
      // packet's audio, but we do not send it.
      if (n < 10 && bytes > 0) {
        for (at += 80; at < samples; at += 80) {
          uint8_t rest[10], m = 0;
          library.encode(state_, pcm + at, rest, &m);
        }
        break;
      }
    }
    return bytes;
  }

 private:
  void* state_;
};

class G729Decoder final : public Decoder {
 public:
  G729Decoder() : state_(library.decoder_open()) {}
  ~G729Decoder() override { library.decoder_close(state_); }
  int sample_rate() const override { return 8000; }
  int length(const uint8_t*, int bytes) const override {
    const int rest = bytes % 10;
    return rest != 0 && rest != 2 ? -1 : (bytes / 10 + (rest == 2 ? 1 : 0)) * 80;
  }
  int decode(const uint8_t* payload, int bytes, int16_t* out, int room) override {
    const int samples = length(payload, bytes);
    if (samples < 0 || samples > room) return -1;
    int made = 0;
    for (int at = 0; at < bytes; at += 10, made += 80) {
      const int n = bytes - at < 10 ? 2 : 10;
      library.decode(state_, payload + at, static_cast<uint8_t>(n), 0, n == 2, 0, out + made);
    }
    return made;
  }
  void conceal(int16_t* out, int samples, const uint8_t*, int) override {
    int made = 0;
    for (; made + 80 <= samples; made += 80) library.decode(state_, nullptr, 0, 1, 0, 0, out + made);
    for (; made < samples; ++made) out[made] = 0;
  }
  // An Annex B silence frame has two bytes and ends its packet.
  Tells tells(const uint8_t*, int bytes) const override {
    return bytes % 10 != 2 ? Tells::voice : bytes == 2 ? Tells::silence : Tells::no_voice;
  }

 private:
  void* state_;
};

template <typename F>
bool find(void* lib, const char* name, F& out) {
  out = reinterpret_cast<F>(dlsym(lib, name));
  return out != nullptr;
}

}  // namespace

bool open_g729(bool wanted) {
  if (!wanted) return false;
  if (usable) return true;
  void* lib = dlopen("libbcg729.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!lib) return false;
  usable = find(lib, "initBcg729EncoderChannel", library.encoder_open) &&
           find(lib, "closeBcg729EncoderChannel", library.encoder_close) &&
           find(lib, "bcg729Encoder", library.encode) && find(lib, "initBcg729DecoderChannel", library.decoder_open) &&
           find(lib, "closeBcg729DecoderChannel", library.decoder_close) && find(lib, "bcg729Decoder", library.decode);
  return usable;
}

const Codec kG729{
    CodecId::g729,
    "G729",
    8000,
    8000,
    [] { return usable.load(); },
    [](const EncoderOptions& o) -> std::unique_ptr<Encoder> { return std::make_unique<G729Encoder>(o.dtx); },
    [](int) -> std::unique_ptr<Decoder> { return std::make_unique<G729Decoder>(); }};

}  // namespace media
