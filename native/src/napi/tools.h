// Functions that need no engine: report features; resample, encode and decode whole pieces of audio, hear speech.
#pragma once
#include <napi.h>

namespace media::skin {

Napi::Value features(const Napi::CallbackInfo& i);
Napi::Value resample(const Napi::CallbackInfo& i);
/** Decodes a GSM 06.10 file: its bytes, and whether they are packed as in WAV. */
Napi::Value gsm(const Napi::CallbackInfo& i);
Napi::Value encode_all(const Napi::CallbackInfo& i);
/** Returns a function that takes frames of a line and returns them as they are judged, with the edges of speech. */
Napi::Value hearing(const Napi::CallbackInfo& i);
Napi::Value decode_all(const Napi::CallbackInfo& i);

}  // namespace media::skin
