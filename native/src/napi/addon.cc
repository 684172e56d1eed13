// The Node-API layer, without logic. Converts checked JavaScript values to the core's, and events to JavaScript values.
#include <napi.h>

#include <memory>

#include "tools.h"
#include "values.h"

namespace media::skin {
namespace {

class EngineSkin : public Napi::ObjectWrap<EngineSkin> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "NativeEngine",
                       {
                           InstanceMethod("openSession", &EngineSkin::open_session),
                           InstanceMethod("closeSession", &EngineSkin::close_session),
                           InstanceMethod("openStream", &EngineSkin::open_stream),
                           InstanceMethod("closeStream", &EngineSkin::close_stream),
                           InstanceMethod("describe", &EngineSkin::describe),
                           InstanceMethod("bridge", &EngineSkin::bridge),
                           InstanceMethod("unbridge", &EngineSkin::unbridge),
                           InstanceMethod("relayKeys", &EngineSkin::relay_keys),
                           InstanceMethod("hearKey", &EngineSkin::hear_key),
                           InstanceMethod("play", &EngineSkin::play),
                           InstanceMethod("stopPlay", &EngineSkin::stop_play),
                           InstanceMethod("feed", &EngineSkin::feed),
                           InstanceMethod("announce", &EngineSkin::announce),
                           InstanceMethod("feedMark", &EngineSkin::feed_mark),
                           InstanceMethod("feedClear", &EngineSkin::feed_clear),
                           InstanceMethod("sendKeys", &EngineSkin::send_keys),
                           InstanceMethod("detect", &EngineSkin::detect),
                           InstanceMethod("watchSpeech", &EngineSkin::watch_speech),
                           InstanceMethod("unwatchSpeech", &EngineSkin::unwatch_speech),
                           InstanceMethod("tap", &EngineSkin::tap),
                           InstanceMethod("untap", &EngineSkin::untap),
                           InstanceMethod("record", &EngineSkin::record),
                           InstanceMethod("recordConference", &EngineSkin::record_conference),
                           InstanceMethod("stopRecord", &EngineSkin::stop_record),
                           InstanceMethod("pauseRecord", &EngineSkin::pause_record),
                           InstanceMethod("openConference", &EngineSkin::open_conference),
                           InstanceMethod("closeConference", &EngineSkin::close_conference),
                           InstanceMethod("joinConference", &EngineSkin::join),
                           InstanceMethod("leaveConference", &EngineSkin::leave),
                           InstanceMethod("sendRtcp", &EngineSkin::send_rtcp),
                           InstanceMethod("takeRaw", &EngineSkin::take_raw),
                           InstanceMethod("prove", &EngineSkin::prove),
                           InstanceMethod("sendRaw", &EngineSkin::send_raw),
                           InstanceMethod("streamStats", &EngineSkin::stream_stats),
                           InstanceMethod("stats", &EngineSkin::stats),
                           InstanceMethod("close", &EngineSkin::close),
                       });
  }

  explicit EngineSkin(const Napi::CallbackInfo& info) : Napi::ObjectWrap<EngineSkin>(info) {
    const auto o = info[0].As<Napi::Object>();
    open_g729(flag(o, "g729"));
    deliver_ = Tsfn::New(info.Env(), info[1].As<Napi::Function>(), "media-events", 0, 1, this);
    // The data plane must not keep the process alive by itself.
    deliver_.Unref(info.Env());
    engine_ = std::make_unique<Engine>(engine_options(o));
    engine_->events().on_wake([this] { deliver_.NonBlockingCall(); });
    // If the process ends without `close`, stop the threads before the environment that they call is gone.
    env_ = info.Env();
    napi_add_env_cleanup_hook(env_, &EngineSkin::at_exit, this);
  }

  ~EngineSkin() override { shut(); }

 private:
  static void on_events(Napi::Env env, Napi::Function callback, EngineSkin* self, void*) {
    if (env == nullptr || !self->engine_) return;
    EventQueue& queue = self->engine_->events();
    queue.begin_read();
    auto list = Napi::Array::New(env);
    uint32_t n = 0;
    Event e;
    while (n < 4096 && queue.pop(e)) {
      if (e.type == EventType::record_ended) self->engine_->forget_record(e.id);
      list.Set(n++, to_js(env, e));
    }
    const uint64_t lost = queue.lost();
    if (lost != self->lost_told_) {
      auto o = Napi::Object::New(env);
      o.Set("type", "events_lost");
      o.Set("count", static_cast<double>(lost - self->lost_told_));
      self->lost_told_ = lost;
      list.Set(n++, o);
    }
    if (n >= 4096) self->deliver_.NonBlockingCall();
    if (n > 0) callback.Call({list});
  }

  void shut() {
    if (!engine_ || closed_) return;
    closed_ = true;
    napi_remove_env_cleanup_hook(env_, &EngineSkin::at_exit, this);
    engine_->close();
    deliver_.Abort();
  }

  static void at_exit(void* skin) {
    auto* self = static_cast<EngineSkin*>(skin);
    self->closed_ = true;
    self->engine_->close();
  }

  Engine& core(Napi::Env env) {
    if (closed_) throw Napi::Error::New(env, "the media engine is closed");
    return *engine_;
  }

  Napi::Value open_session(const Napi::CallbackInfo& i) {
    return Napi::Number::New(i.Env(), core(i.Env()).open_session());
  }
  void close_session(const Napi::CallbackInfo& i) {
    if (!closed_) engine_->close_session(id_of(i));
  }
  Napi::Value open_stream(const Napi::CallbackInfo& i) {
    const auto o = i[1].As<Napi::Object>();
    Policy p;
    p.strict = text(o, "validation") == "strict";
    p.sources = networks(o.Get("sources"));
    if (o.Get("signalled_from").IsString()) Address::parse(text(o, "signalled_from"), 0, p.signalled_from);
    p.family = static_cast<uint8_t>(number(o, "family"));
    Engine::Opened opened;
    if (!core(i.Env()).open_stream(id_of(i), std::move(p), opened)) return i.Env().Null();
    auto out = Napi::Object::New(i.Env());
    out.Set("id", opened.id);
    out.Set("rtp_port", static_cast<double>(opened.rtp_port));
    out.Set("rtcp_port", static_cast<double>(opened.rtcp_port));
    return out;
  }
  void close_stream(const Napi::CallbackInfo& i) {
    if (!closed_) engine_->close_stream(id_of(i));
  }
  void describe(const Napi::CallbackInfo& i) { core(i.Env()).describe(id_of(i), description(i[1].As<Napi::Object>())); }
  void bridge(const Napi::CallbackInfo& i) { core(i.Env()).bridge(id_of(i), id_of(i, 1)); }
  void unbridge(const Napi::CallbackInfo& i) { core(i.Env()).unbridge(id_of(i)); }
  void relay_keys(const Napi::CallbackInfo& i) {
    const bool on = i[1].ToBoolean();
    core(i.Env()).with(id_of(i), [on](Stream& s, uint64_t) { s.relay_keys(on); });
  }
  void hear_key(const Napi::CallbackInfo& i) {
    const auto digit = static_cast<char>(i[1].ToString().Utf8Value()[0]);
    core(i.Env()).with(id_of(i), [digit](Stream& s, uint64_t now) { s.hear_key(digit, now); });
  }
  void play(const Napi::CallbackInfo& i) {
    const auto o = i[1].As<Napi::Object>();
    auto list = std::make_shared<std::vector<Piece>>(pieces(o.Get("pieces").As<Napi::Array>()));
    const auto loops = static_cast<uint32_t>(number(o, "loop", 1));
    core(i.Env()).with(id_of(i), [list, loops, id = text(o, "play_id")](Stream& s, uint64_t now) {
      s.play(std::make_unique<Player>(id, std::move(*list), loops), now);
    });
  }
  void stop_play(const Napi::CallbackInfo& i) {
    core(i.Env()).with(id_of(i), [id = i[1].ToString().Utf8Value()](Stream& s, uint64_t) { s.stop_play(id); });
  }
  void feed(const Napi::CallbackInfo& i) {
    auto pcm = samples(i[1]);
    const int rate = i[2].ToNumber().Int32Value();
    const bool yields = i[3].ToBoolean();
    core(i.Env()).with(id_of(i), [=](Stream& s, uint64_t now) { s.feed(pcm, rate, yields, now); });
  }
  void announce(const Napi::CallbackInfo& i) {
    auto pcm = samples(i[1]);
    const int rate = i[2].ToNumber().Int32Value();
    core(i.Env()).with(id_of(i), [=](Stream& s, uint64_t now) { s.announce(pcm, rate, now); });
  }
  void feed_mark(const Napi::CallbackInfo& i) {
    core(i.Env()).with(id_of(i), [name = i[1].ToString().Utf8Value()](Stream& s, uint64_t) { s.feed_mark(name); });
  }
  void feed_clear(const Napi::CallbackInfo& i) {
    core(i.Env()).with(id_of(i), [](Stream& s, uint64_t) { s.feed_clear(); });
  }
  void send_keys(const Napi::CallbackInfo& i) {
    KeySender::Request r{i[1].ToString().Utf8Value(), i[2].ToString().Utf8Value(), i[3].ToNumber().Uint32Value(),
                                i[4].ToNumber().Uint32Value()};
    core(i.Env()).with(id_of(i), [r](Stream& s, uint64_t now) { s.send_keys(r, now); });
  }
  void detect(const Napi::CallbackInfo& i) {
    const bool inband = i[1].ToBoolean(), voice = i[2].ToBoolean(), tones = i[3].ToBoolean();
    core(i.Env()).with(id_of(i), [=](Stream& s, uint64_t now) { s.detect(inband, voice, tones, now); });
  }
  void watch_speech(const Napi::CallbackInfo& i) {
    const SpeechWatchOptions options{i[1].ToNumber().Int32Value(), i[2].ToNumber().Int32Value(), i[3].ToBoolean()};
    core(i.Env()).with(id_of(i), [options](Stream& s, uint64_t now) { s.watch_speech(&options, now); });
  }
  void unwatch_speech(const Napi::CallbackInfo& i) {
    core(i.Env()).with(id_of(i), [](Stream& s, uint64_t now) { s.watch_speech(nullptr, now); });
  }
  void tap(const Napi::CallbackInfo& i) {
    const TapOptions options{i[1].ToString().Utf8Value(), i[2].ToBoolean(), i[3].ToNumber().Int32Value(),
                             i[4].ToNumber().Int32Value(), i[5].ToBoolean()};
    core(i.Env()).with(id_of(i), [options](Stream& s, uint64_t now) { s.tap(options, now); });
  }
  void untap(const Napi::CallbackInfo& i) {
    core(i.Env()).with(id_of(i),
                       [id = i[1].ToString().Utf8Value()](Stream& s, uint64_t now) { s.untap(id, now); });
  }
  void record(const Napi::CallbackInfo& i) { core(i.Env()).record(record_request(i[0].As<Napi::Object>())); }
  void record_conference(const Napi::CallbackInfo& i) {
    core(i.Env()).record_conference(id_of(i), record_request(i[1].As<Napi::Object>()));
  }
  void stop_record(const Napi::CallbackInfo& i) { core(i.Env()).stop_record(i[0].ToString().Utf8Value()); }
  void pause_record(const Napi::CallbackInfo& i) {
    core(i.Env()).pause_record(i[0].ToString().Utf8Value(), i[1].ToBoolean(), i[2].ToBoolean());
  }
  Napi::Value open_conference(const Napi::CallbackInfo& i) {
    return Napi::Number::New(i.Env(), core(i.Env()).open_conference(i[0].ToNumber().Int32Value()));
  }
  void close_conference(const Napi::CallbackInfo& i) {
    if (!closed_) engine_->close_conference(id_of(i));
  }
  void join(const Napi::CallbackInfo& i) {
    core(i.Env()).join(id_of(i), id_of(i, 1), i[2].ToBoolean(), i[3].ToBoolean(), id_of(i, 4));
  }
  void leave(const Napi::CallbackInfo& i) {
    if (!closed_) engine_->leave(id_of(i));
  }
  void send_rtcp(const Napi::CallbackInfo& i) {
    core(i.Env()).with(id_of(i), [packet = bytes(i[1])](Stream& s, uint64_t) {
      s.send_rtcp_packet(packet.data(), packet.size());
    });
  }

  void take_raw(const Napi::CallbackInfo& i) {
    const bool on = i[1].ToBoolean();
    core(i.Env()).with(id_of(i), [on](Stream& s, uint64_t) { s.take_raw(on); });
  }
  void prove(const Napi::CallbackInfo& i) {
    const auto paths = i[1].As<Napi::Array>();
    std::vector<Address> proved(paths.Length());
    for (uint32_t at = 0; at < paths.Length(); ++at) {
      const auto path = paths.Get(at).As<Napi::Object>();
      Address::parse(path.Get("address").ToString().Utf8Value(),
                     static_cast<uint16_t>(path.Get("port").ToNumber().Uint32Value()), proved[at]);
    }
    core(i.Env()).with(id_of(i), [proved](Stream& s, uint64_t) { s.prove(proved); });
  }
  void send_raw(const Napi::CallbackInfo& i) {
    Address to;
    Address::parse(i[2].ToString().Utf8Value(), static_cast<uint16_t>(id_of(i, 3)), to);
    core(i.Env()).with(id_of(i), [packet = bytes(i[1]), to](Stream& s, uint64_t) {
      s.send_raw(packet.data(), packet.size(), to);
    });
  }

  Napi::Value stream_stats(const Napi::CallbackInfo& i) {
    const Napi::Env env = i.Env();
    const auto c = closed_ ? nullptr : engine_->counters(id_of(i));
    if (!c) return env.Null();
    return to_js(env, *c);
  }

  Napi::Value stats(const Napi::CallbackInfo& i) { return to_js(i.Env(), core(i.Env())); }

  void close(const Napi::CallbackInfo&) { shut(); }

  using Tsfn = Napi::TypedThreadSafeFunction<EngineSkin, void, &EngineSkin::on_events>;
  Tsfn deliver_;
  std::unique_ptr<Engine> engine_;
  napi_env env_ = nullptr;
  uint64_t lost_told_ = 0;
  bool closed_ = false;
};

Napi::Object init(Napi::Env env, Napi::Object exports) {
  auto* constructor = new Napi::FunctionReference(Napi::Persistent(EngineSkin::define(env)));
  env.AddCleanupHook([constructor] { delete constructor; });
  exports.Set("createEngine", Napi::Function::New(env, [constructor](const Napi::CallbackInfo& i) -> Napi::Value {
                return constructor->New({i[0], i[1]});
              }));
  exports.Set("features", Napi::Function::New(env, features));
  exports.Set("resample", Napi::Function::New(env, resample));
  exports.Set("decodeGsm", Napi::Function::New(env, gsm));
  exports.Set("hearing", Napi::Function::New(env, hearing));
  exports.Set("encodeTest", Napi::Function::New(env, encode_all));
  exports.Set("decodeTest", Napi::Function::New(env, decode_all));
  return exports;
}

}  // namespace
}  // namespace media::skin

using media::skin::init;
NODE_API_MODULE(media, init)
