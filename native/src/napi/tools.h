// Functions that need no engine: report features; resample, encode and decode whole pieces of audio.
#pragma once
#include <napi.h>

namespace media::skin {

Napi::Value features(const Napi::CallbackInfo& i);
Napi::Value resample(const Napi::CallbackInfo& i);
Napi::Value encode_all(const Napi::CallbackInfo& i);
Napi::Value decode_all(const Napi::CallbackInfo& i);

}  // namespace media::skin
