// Tools that need no engine: what this machine can do, and whole pieces of audio converted, encoded or decoded at once.
#pragma once
#include <napi.h>

namespace media::skin {

Napi::Value features(const Napi::CallbackInfo& i);
Napi::Value resample(const Napi::CallbackInfo& i);
Napi::Value encode_all(const Napi::CallbackInfo& i);
Napi::Value decode_all(const Napi::CallbackInfo& i);

}  // namespace media::skin
