// What needs no engine: what this machine can do, whole pieces of audio converted, encoded and decoded at once.
#pragma once
#include <napi.h>

namespace media::skin {

Napi::Value features(const Napi::CallbackInfo& i);
Napi::Value resample(const Napi::CallbackInfo& i);
Napi::Value encode_all(const Napi::CallbackInfo& i);
Napi::Value decode_all(const Napi::CallbackInfo& i);

}  // namespace media::skin
