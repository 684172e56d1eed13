#include "tools.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "../codec/gsm.h"
#include "../core/resample.h"
#include "../core/speech_watch.h"
#include "values.h"

namespace media::skin {

Napi::Value features(const Napi::CallbackInfo& i) {
  open_g729(i[0].ToBoolean());
  auto codecs = Napi::Array::New(i.Env());
  uint32_t n = 0;
  for (const auto& c : media::codecs())
    if (c.available()) codecs.Set(n++, c.name);
  auto suites = Napi::Array::New(i.Env());
  n = 0;
  for (const auto& s : srtp_suites()) suites.Set(n++, s.name);
  auto o = Napi::Object::New(i.Env());
  o.Set("codecs", codecs);
  o.Set("srtp_suites", suites);
  return o;
}

Napi::Value resample(const Napi::CallbackInfo& i) {
  const auto in = i[0].As<Napi::Int16Array>();
  return int16s(i.Env(), media::resample_all(in.Data(), in.ElementLength(), i[1].ToNumber().DoubleValue(),
                                             i[2].ToNumber().DoubleValue()));
}

Napi::Value gsm(const Napi::CallbackInfo& i) {
  const auto in = i[0].As<Napi::Uint8Array>();
  const auto packing = i[1].ToBoolean() ? GsmPacking::wav49 : GsmPacking::frames;
  return int16s(i.Env(), decode_gsm(in.Data(), in.ElementLength(), packing));
}

static const Codec& codec_named(const Napi::CallbackInfo& i) {
  const std::string name = i[0].ToString().Utf8Value();
  open_g729(true);
  for (const auto& c : media::codecs())
    if (name == c.name && c.available()) return c;
  throw Napi::TypeError::New(i.Env(), "the codec is not available: " + name);
}

Napi::Value encode_all(const Napi::CallbackInfo& i) {
  const auto& codec = codec_named(i);
  const auto in = i[1].As<Napi::Int16Array>();
  auto encoder = codec.encoder({});
  const auto frame = static_cast<size_t>(codec.sample_rate / 50);
  std::vector<uint8_t> out;
  for (size_t at = 0; at + frame <= in.ElementLength(); at += frame) {
    uint8_t payload[1500];
    const int n = std::max(0, encoder->encode(in.Data() + at, static_cast<int>(frame), payload, sizeof payload));
    out.push_back(static_cast<uint8_t>(n >> 8));
    out.push_back(static_cast<uint8_t>(n));
    out.insert(out.end(), payload, payload + n);
  }
  return Napi::Buffer<uint8_t>::Copy(i.Env(), out.data(), out.size());
}

Napi::Value hearing(const Napi::CallbackInfo& i) {
  const SpeechWatchOptions options{i[0].ToNumber().Int32Value(), i[1].ToNumber().Int32Value(), i[2].ToBoolean()};
  const auto heard = std::make_shared<Hearing>(options);
  return Napi::Function::New(i.Env(), [heard](const Napi::CallbackInfo& call) -> Napi::Value {
    const auto frame = call[0].As<Napi::Int16Array>();
    auto clean = Napi::Int16Array::New(call.Env(), Hearing::kFrame);
    auto list = Napi::Array::New(call.Env());
    uint32_t n = 0;
    for (const auto edge : heard->take(frame.Data(), clean.Data())) {
      const char* name = SpeechEdges::name(edge);
      if (!name && !SpeechEdges::is_voice(edge)) continue;
      auto told = Napi::Object::New(call.Env());
      told.Set("edge", name ? name : "voiced");
      told.Set("quiet_ms", heard->quiet_ms());
      list.Set(n++, told);
    }
    auto out = Napi::Object::New(call.Env());
    out.Set("samples", clean);
    out.Set("edges", list);
    return out;
  });
}

Napi::Value decode_all(const Napi::CallbackInfo& i) {
  const auto& codec = codec_named(i);
  const auto in = bytes(i[1]);
  auto decoder = codec.decoder(0);
  std::vector<int16_t> out;
  std::vector<int16_t> pcm(kMaxFrameSamples);
  for (size_t at = 0; at + 2 <= in.size();) {
    const size_t n = static_cast<size_t>(in[at]) << 8 | in[at + 1];
    at += 2;
    if (at + n > in.size()) break;
    const int frame = codec.sample_rate / 50;
    int made = frame;
    if (n == 0)
      decoder->conceal(pcm.data(), frame, nullptr, 0);
    else
      made = decoder->decode(&in[at], static_cast<int>(n), pcm.data(), kMaxFrameSamples);
    if (made > 0) out.insert(out.end(), pcm.begin(), pcm.begin() + made);
    at += n;
  }
  return int16s(i.Env(), out);
}

}  // namespace media::skin
