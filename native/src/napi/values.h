// Converts between JavaScript values, which native/check.ts has checked, and the core's values.
#pragma once
#include <napi.h>

#include <memory>
#include <string>
#include <vector>

#include "../core/engine.h"

namespace media::skin {

inline std::string text(const Napi::Object& o, const char* key) {
  return o.Get(key).ToString().Utf8Value();
}
inline double number(const Napi::Object& o, const char* key, double otherwise = 0) {
  const Napi::Value v = o.Get(key);
  return v.IsNumber() ? v.ToNumber().DoubleValue() : otherwise;
}
inline bool flag(const Napi::Object& o, const char* key) {
  return o.Get(key).ToBoolean();
}
inline uint32_t id_of(const Napi::CallbackInfo& info, size_t at = 0) {
  return info[at].ToNumber().Uint32Value();
}
inline bool present(const Napi::Value& v) {
  return !v.IsNull() && !v.IsUndefined();
}

std::vector<Network> networks(const Napi::Value& v);
std::vector<uint8_t> bytes(const Napi::Value& v);
std::shared_ptr<const std::vector<int16_t>> samples(const Napi::Value& v);
StreamConfig description(const Napi::Object& o);
std::vector<Piece> pieces(const Napi::Array& list);
RecordRequest record_request(const Napi::Object& o);
EngineOptions engine_options(const Napi::Object& o);

Napi::Value int16s(Napi::Env env, const std::vector<int16_t>& v);
Napi::Value to_js(Napi::Env env, const Event& e);
Napi::Value to_js(Napi::Env env, const StreamCounters& c);
/** Converts the engine's statistics: threads, ports, recordings. */
Napi::Value to_js(Napi::Env env, Engine& engine);

}  // namespace media::skin
