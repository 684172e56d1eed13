// The skin: turns checked JavaScript values into the core's, and events back. It decides nothing.
#include <napi.h>

#include <memory>
#include <string>
#include <vector>

#include "../core/clock.h"
#include "../core/engine.h"
#include "../core/resample.h"

namespace {

using media::Address;
using media::Event;
using media::EventType;

std::string text(const Napi::Object& o, const char* key) {
  return o.Get(key).ToString().Utf8Value();
}
double number(const Napi::Object& o, const char* key, double otherwise = 0) {
  const Napi::Value v = o.Get(key);
  return v.IsNumber() ? v.ToNumber().DoubleValue() : otherwise;
}
bool flag(const Napi::Object& o, const char* key) {
  return o.Get(key).ToBoolean();
}
uint32_t id_of(const Napi::CallbackInfo& info, size_t at = 0) {
  return info[at].ToNumber().Uint32Value();
}
bool present(const Napi::Value& v) {
  return !v.IsNull() && !v.IsUndefined();
}

std::vector<media::Network> networks(const Napi::Value& v) {
  std::vector<media::Network> out;
  if (!v.IsArray()) return out;
  const auto list = v.As<Napi::Array>();
  for (uint32_t i = 0; i < list.Length(); ++i) {
    media::Network n;
    if (media::Network::parse(list.Get(i).ToString().Utf8Value(), n)) out.push_back(n);
  }
  return out;
}

std::vector<uint8_t> bytes(const Napi::Value& v) {
  const auto a = v.As<Napi::Uint8Array>();
  return {a.Data(), a.Data() + a.ByteLength()};
}

std::shared_ptr<const std::vector<int16_t>> samples(const Napi::Value& v) {
  const auto a = v.As<Napi::Int16Array>();
  return std::make_shared<const std::vector<int16_t>>(a.Data(), a.Data() + a.ElementLength());
}

media::PayloadFacts payload(const Napi::Object& o, media::PayloadKind kind) {
  media::PayloadFacts f;
  std::string name = text(o, "codec");
  for (auto& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  f.kind = kind;
  f.payload_type = static_cast<uint8_t>(number(o, "payload_type"));
  f.clock_rate = static_cast<uint32_t>(number(o, "clock_rate", 8000));
  f.name = media::intern(name);
  const media::Codec* codec = media::find_codec(name, static_cast<int>(f.clock_rate));
  if (codec) f.codec = codec->id;
  return f;
}

media::StreamConfig description(const Napi::Object& o) {
  media::StreamConfig c;
  if (present(o.Get("remote"))) {
    const auto r = o.Get("remote").As<Napi::Object>();
    const auto rtp = static_cast<uint16_t>(number(r, "rtp_port"));
    Address::parse(text(r, "address"), rtp, c.remote_rtp);
    Address::parse(text(r, "address"), static_cast<uint16_t>(number(r, "rtcp_port", rtp + 1)), c.remote_rtcp);
  }
  c.rtcp_mux = flag(o, "rtcp_mux");
  const std::string direction = text(o, "direction");
  c.may_send = direction == "sendrecv" || direction == "sendonly";
  c.may_receive = direction == "sendrecv" || direction == "recvonly";
  const auto each = [&](const Napi::Value& list, media::PayloadKind kind) {
    if (!list.IsArray()) return;
    const auto a = list.As<Napi::Array>();
    for (uint32_t i = 0; i < a.Length(); ++i) c.receive.push_back(payload(a.Get(i).As<Napi::Object>(), kind));
  };
  each(o.Get("receive"), media::PayloadKind::audio);
  if (present(o.Get("telephone_event"))) {
    const auto t = o.Get("telephone_event").As<Napi::Object>();
    each(t.Get("receive"), media::PayloadKind::telephone_event);
    if (present(t.Get("send"))) {
      c.sends_events = true;
      c.event = payload(t.Get("send").As<Napi::Object>(), media::PayloadKind::telephone_event);
    }
  }
  if (o.Get("comfort_noise").IsArray()) {
    const auto a = o.Get("comfort_noise").As<Napi::Array>();
    for (uint32_t i = 0; i < a.Length(); ++i) {
      media::PayloadFacts f;
      f.kind = media::PayloadKind::comfort_noise;
      f.payload_type = static_cast<uint8_t>(a.Get(i).ToNumber().Uint32Value() & 0x7f);
      f.name = media::intern("CN");
      c.receive.push_back(f);
    }
  }
  if (present(o.Get("send"))) {
    const auto s = o.Get("send").As<Napi::Object>();
    c.sends = true;
    c.send = payload(s, media::PayloadKind::audio);
    c.ptime_ms = static_cast<int>(number(s, "ptime_ms", 20));
    c.comfort_noise_pt = static_cast<int>(number(s, "comfort_noise", -1));
    c.fec = flag(s, "fec");
    c.dtx = flag(s, "dtx");
    c.annexb = flag(s, "annexb");
    c.bitrate = static_cast<int>(number(s, "bitrate"));
  }
  if (present(o.Get("srtp"))) {
    const auto s = o.Get("srtp").As<Napi::Object>();
    const auto* suite = media::find_srtp_suite(text(s, "suite"));
    c.secured = true;
    if (suite) c.suite = suite->suite;
    c.receive_key = bytes(s.Get("receive_key"));
    c.send_key = bytes(s.Get("send_key"));
  }
  return c;
}

std::vector<media::Piece> pieces(const Napi::Array& list) {
  std::vector<media::Piece> out;
  for (uint32_t i = 0; i < list.Length(); ++i) {
    const auto o = list.Get(i).As<Napi::Object>();
    const std::string kind = text(o, "kind");
    media::Piece p;
    if (kind == "pcm") {
      p.kind = media::Piece::Kind::pcm;
      p.samples = samples(o.Get("samples"));
      p.rate_hz = static_cast<int>(number(o, "rate_hz"));
    } else if (kind == "tone") {
      p.kind = media::Piece::Kind::tone;
      const auto hz = o.Get("hz").As<Napi::Array>();
      for (uint32_t k = 0; k < hz.Length() && k < 4; ++k) p.hz[p.tones++] = hz.Get(k).ToNumber().DoubleValue();
      p.level_dbm0 = number(o, "level_dbm0", -13);
      p.on_ms = static_cast<uint64_t>(number(o, "on_ms"));
      p.off_ms = static_cast<uint64_t>(number(o, "off_ms"));
      p.total_ms = static_cast<uint64_t>(number(o, "total_ms"));
    } else {
      p.total_ms = static_cast<uint64_t>(number(o, "ms"));
      p.on_ms = 1;
      if (p.total_ms == 0) continue;
    }
    out.push_back(std::move(p));
  }
  return out;
}

Napi::Value int16s(Napi::Env env, const std::vector<int16_t>& v) {
  auto out = Napi::Int16Array::New(env, v.size());
  std::copy(v.begin(), v.end(), out.Data());
  return out;
}

Napi::Value to_js(Napi::Env env, const Event& e) {
  auto o = Napi::Object::New(env);
  const auto say = [&](const char* type) { o.Set("type", type); };
  if (e.type != EventType::record_ended) o.Set("stream_id", e.stream);
  switch (e.type) {
    case EventType::latched:
      say("latched");
      o.Set("address", e.text);
      o.Set("port", static_cast<double>(e.a));
      break;
    case EventType::first_packet:
      say("first_packet");
      o.Set("at_ms", static_cast<double>(e.a));
      break;
    case EventType::silent:
      say("silent");
      o.Set("for_ms", static_cast<double>(e.a));
      break;
    case EventType::srtp_failed:
      say("srtp_failed");
      break;
    case EventType::key:
      say("key");
      o.Set("digit", e.text);
      o.Set("duration_ms", static_cast<double>(e.a));
      o.Set("source", e.flag ? "inband" : "rfc4733");
      break;
    case EventType::play_ended:
      say("play_ended");
      o.Set("play_id", e.id);
      o.Set("reason", e.text);
      o.Set("played_ms", static_cast<double>(e.a));
      break;
    case EventType::mark:
      say("mark");
      o.Set("name", e.text);
      break;
    case EventType::digits_sent:
      say("digits_sent");
      o.Set("send_id", e.id);
      o.Set("sent", e.flag);
      break;
    case EventType::record_ended:
      say("record_ended");
      o.Set("recording_id", e.id);
      o.Set("reason", e.text);
      o.Set("key", e.text == "key" ? e.detail : std::string());
      o.Set("detail", e.text == "key" ? std::string() : e.detail);
      o.Set("duration_ms", static_cast<double>(e.a));
      o.Set("bytes", static_cast<double>(e.b));
      o.Set("sha256", e.sha256);
      o.Set("empty", e.flag);
      break;
    case EventType::rtcp:
      say("rtcp");
      o.Set("packet", Napi::Buffer<uint8_t>::Copy(env, e.bytes.data(), e.bytes.size()));
      break;
    case EventType::voice:
      say("voice");
      o.Set("speaking", e.flag);
      o.Set("lasted_ms", static_cast<double>(e.a));
      break;
    case EventType::tone:
      say("tone");
      o.Set("tone", e.text);
      break;
    case EventType::tap:
      say("tap");
      o.Set("tap_id", e.id);
      o.Set("samples", int16s(env, e.samples));
      o.Set("offset_ms", static_cast<double>(e.a));
      break;
    case EventType::raw:
      say("raw");
      o.Set("packet", Napi::Buffer<uint8_t>::Copy(env, e.bytes.data(), e.bytes.size()));
      o.Set("address", e.text);
      o.Set("port", static_cast<double>(e.a));
      break;
    case EventType::none:
      break;
  }
  return o;
}

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
                           InstanceMethod("play", &EngineSkin::play),
                           InstanceMethod("stopPlay", &EngineSkin::stop_play),
                           InstanceMethod("feed", &EngineSkin::feed),
                           InstanceMethod("feedMark", &EngineSkin::feed_mark),
                           InstanceMethod("feedClear", &EngineSkin::feed_clear),
                           InstanceMethod("sendKeys", &EngineSkin::send_keys),
                           InstanceMethod("detect", &EngineSkin::detect),
                           InstanceMethod("tap", &EngineSkin::tap),
                           InstanceMethod("untap", &EngineSkin::untap),
                           InstanceMethod("record", &EngineSkin::record),
                           InstanceMethod("stopRecord", &EngineSkin::stop_record),
                           InstanceMethod("pauseRecord", &EngineSkin::pause_record),
                           InstanceMethod("openConference", &EngineSkin::open_conference),
                           InstanceMethod("closeConference", &EngineSkin::close_conference),
                           InstanceMethod("joinConference", &EngineSkin::join),
                           InstanceMethod("leaveConference", &EngineSkin::leave),
                           InstanceMethod("sendRtcp", &EngineSkin::send_rtcp),
                           InstanceMethod("takeRaw", &EngineSkin::take_raw),
                           InstanceMethod("sendRaw", &EngineSkin::send_raw),
                           InstanceMethod("streamStats", &EngineSkin::stream_stats),
                           InstanceMethod("stats", &EngineSkin::stats),
                           InstanceMethod("close", &EngineSkin::close),
                       });
  }

  explicit EngineSkin(const Napi::CallbackInfo& info) : Napi::ObjectWrap<EngineSkin>(info) {
    const auto o = info[0].As<Napi::Object>();
    media::EngineOptions options;
    options.threads = static_cast<int>(number(o, "threads", 1));
    Address::parse(text(o, "bind_address"), 0, options.bind);
    options.port_min = static_cast<uint16_t>(number(o, "port_min"));
    options.port_max = static_cast<uint16_t>(number(o, "port_max"));
    options.quarantine_ms = static_cast<uint64_t>(number(o, "quarantine_ms"));
    options.denied = networks(o.Get("denied"));
    options.worker.coalesce_us = static_cast<unsigned>(number(o, "coalesce_us"));
    options.worker.io_uring = flag(o, "io_uring");
    options.worker.opus_complexity = static_cast<int>(number(o, "opus_complexity"));
    options.event_queue = static_cast<size_t>(number(o, "event_queue"));
    media::open_g729(flag(o, "g729"));
    deliver_ = Tsfn::New(info.Env(), info[1].As<Napi::Function>(), "media-events", 0, 1, this);
    // Timers and sockets of JavaScript keep a process alive; the data plane alone does not.
    deliver_.Unref(info.Env());
    engine_ = std::make_unique<media::Engine>(options);
    engine_->events().on_wake([this] { deliver_.NonBlockingCall(); });
    // A process that ends without `close`: the threads stop before what they would call is taken down.
    env_ = info.Env();
    napi_add_env_cleanup_hook(env_, &EngineSkin::at_exit, this);
  }

  ~EngineSkin() override { shut(); }

 private:
  static void on_events(Napi::Env env, Napi::Function callback, EngineSkin* self, void*) {
    if (env == nullptr || !self->engine_) return;
    media::EventQueue& queue = self->engine_->events();
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

  media::Engine& core(Napi::Env env) {
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
    media::Policy p;
    p.strict = text(o, "validation") == "strict";
    p.sources = networks(o.Get("sources"));
    if (o.Get("signalled_from").IsString()) Address::parse(text(o, "signalled_from"), 0, p.signalled_from);
    media::Engine::Opened opened;
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
    core(i.Env()).with(id_of(i), [on](media::Stream& s, uint64_t) { s.relay_keys(on); });
  }
  void play(const Napi::CallbackInfo& i) {
    const auto o = i[1].As<Napi::Object>();
    auto list = std::make_shared<std::vector<media::Piece>>(pieces(o.Get("pieces").As<Napi::Array>()));
    const auto loops = static_cast<uint32_t>(number(o, "loop", 1));
    core(i.Env()).with(id_of(i), [list, loops, id = text(o, "play_id")](media::Stream& s, uint64_t now) {
      s.play(std::make_unique<media::Player>(id, std::move(*list), loops), now);
    });
  }
  void stop_play(const Napi::CallbackInfo& i) {
    core(i.Env()).with(id_of(i),
                       [id = i[1].ToString().Utf8Value()](media::Stream& s, uint64_t now) { s.stop_play(id, now); });
  }
  Napi::Value feed(const Napi::CallbackInfo& i) {
    auto pcm = samples(i[1]);
    const int rate = i[2].ToNumber().Int32Value();
    core(i.Env()).with(id_of(i), [pcm, rate](media::Stream& s, uint64_t now) { s.feed(pcm, rate, now); });
    return Napi::Number::New(i.Env(), static_cast<double>(pcm->size()));
  }
  void feed_mark(const Napi::CallbackInfo& i) {
    core(i.Env()).with(
        id_of(i), [name = i[1].ToString().Utf8Value()](media::Stream& s, uint64_t now) { s.feed_mark(name, now); });
  }
  void feed_clear(const Napi::CallbackInfo& i) {
    core(i.Env()).with(id_of(i), [](media::Stream& s, uint64_t) { s.feed_clear(); });
  }
  void send_keys(const Napi::CallbackInfo& i) {
    media::KeySender::Request r{i[1].ToString().Utf8Value(), i[2].ToString().Utf8Value(), i[3].ToNumber().Uint32Value(),
                                i[4].ToNumber().Uint32Value()};
    core(i.Env()).with(id_of(i), [r](media::Stream& s, uint64_t now) { s.send_keys(r, now); });
  }
  void detect(const Napi::CallbackInfo& i) {
    const bool inband = i[1].ToBoolean(), voice = i[2].ToBoolean(), tones = i[3].ToBoolean();
    core(i.Env()).with(id_of(i), [=](media::Stream& s, uint64_t now) { s.detect(inband, voice, tones, now); });
  }
  void tap(const Napi::CallbackInfo& i) {
    const bool sent = i[2].ToBoolean();
    const int rate = i[3].ToNumber().Int32Value(), chunk = i[4].ToNumber().Int32Value();
    core(i.Env()).with(id_of(i), [=, id = i[1].ToString().Utf8Value()](media::Stream& s, uint64_t now) {
      s.tap(id, sent, rate, chunk, now);
    });
  }
  void untap(const Napi::CallbackInfo& i) {
    core(i.Env()).with(id_of(i),
                       [id = i[1].ToString().Utf8Value()](media::Stream& s, uint64_t now) { s.untap(id, now); });
  }
  void record(const Napi::CallbackInfo& i) {
    const auto o = i[0].As<Napi::Object>();
    media::RecordRequest r;
    r.config.id = text(o, "recording_id");
    r.config.file = text(o, "file");
    r.config.finish_keys = text(o, "finish_keys");
    r.config.channels = static_cast<int>(number(o, "channels"));
    r.config.rate_hz = static_cast<int>(number(o, "rate_hz"));
    r.config.max_ms = static_cast<uint64_t>(number(o, "max_ms"));
    r.config.silence_ms = static_cast<uint64_t>(number(o, "silence_ms"));
    r.config.trim = flag(o, "trim");
    r.left = static_cast<uint32_t>(number(o, "left"));
    r.right = static_cast<uint32_t>(number(o, "right"));
    r.both = flag(o, "both");
    core(i.Env()).record(std::move(r));
  }
  void stop_record(const Napi::CallbackInfo& i) { core(i.Env()).stop_record(i[0].ToString().Utf8Value()); }
  void pause_record(const Napi::CallbackInfo& i) {
    core(i.Env()).pause_record(i[0].ToString().Utf8Value(), i[1].ToBoolean());
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
    core(i.Env()).with(id_of(i), [packet = bytes(i[1])](media::Stream& s, uint64_t) {
      s.send_rtcp_packet(packet.data(), packet.size());
    });
  }

  void take_raw(const Napi::CallbackInfo& i) {
    const bool on = i[1].ToBoolean();
    core(i.Env()).with(id_of(i), [on](media::Stream& s, uint64_t) { s.take_raw(on); });
  }
  void send_raw(const Napi::CallbackInfo& i) {
    Address to;
    Address::parse(i[2].ToString().Utf8Value(), static_cast<uint16_t>(id_of(i, 3)), to);
    core(i.Env()).with(id_of(i), [packet = bytes(i[1]), to](media::Stream& s, uint64_t) {
      s.send_raw(packet.data(), packet.size(), to);
    });
  }

  Napi::Value stream_stats(const Napi::CallbackInfo& i) {
    const Napi::Env env = i.Env();
    const auto c = closed_ ? nullptr : engine_->counters(id_of(i));
    if (!c) return env.Null();
    auto o = Napi::Object::New(env);
    const auto set = [&](const char* key, double v) { o.Set(key, v); };
    const auto count = [&](const char* key, uint64_t v) { o.Set(key, static_cast<double>(v)); };
    const auto maybe = [&](const char* key, bool known, double v) {
      if (known)
        o.Set(key, v);
      else
        o.Set(key, env.Null());
    };
    count("packets_received", c->packets_received);
    count("bytes_received", c->bytes_received);
    count("packets_sent", c->packets_sent);
    count("bytes_sent", c->bytes_sent);
    count("packets_lost", c->lost);
    count("packets_duplicate", c->duplicate);
    count("packets_reordered", c->reordered);
    count("loss_bursts", c->bursts);
    count("longest_burst", c->longest_burst);
    set("jitter_ms", c->jitter_ms);
    set("jitter_max_ms", c->jitter_max_ms);
    maybe("rtt_ms", c->rtt_known, c->rtt_ms);
    maybe("remote_fraction_lost", c->remote_known, c->remote_fraction_lost);
    maybe("remote_packets_lost", c->remote_known, static_cast<double>(c->remote_lost));
    maybe("remote_jitter_ms", c->remote_known, c->remote_jitter_ms);
    maybe("first_packet_at", c->first_packet_ms != 0, static_cast<double>(c->first_packet_ms));
    maybe("last_packet_at", c->last_packet_ms != 0, static_cast<double>(c->last_packet_ms));
    count("strangers_dropped", c->strangers);
    count("malformed_dropped", c->malformed);
    count("policed_dropped", c->policed);
    count("unexpected_dropped", c->unexpected);
    count("srtp_auth_failed", c->srtp_auth_failed);
    count("srtp_replayed", c->srtp_replayed);
    count("ssrc_changes", c->ssrc_changes);
    count("keys_received", c->keys_received);
    count("send_failed", c->send_failed);
    count("rtcp_received", c->rtcp_received);
    count("rtcp_sent", c->rtcp_sent);
    count("concealed_frames", c->concealed);
    count("late_frames", c->late);
    set("jitter_buffer_ms", c->jitter_buffer_ms);
    const char* in = c->receive_codec;
    const char* out = c->send_codec;
    o.Set("receive_codec", in ? in : "");
    o.Set("send_codec", out ? out : "");
    o.Set("latched", Napi::Boolean::New(env, c->latched));
    return o;
  }

  Napi::Value stats(const Napi::CallbackInfo& i) {
    const Napi::Env env = i.Env();
    media::Engine& engine = core(env);
    auto threads = Napi::Array::New(env);
    uint32_t n = 0;
    for (const auto& w : engine.workers()) {
      auto t = Napi::Object::New(env);
      const auto& c = w->counters();
      t.Set("thread", n);
      t.Set("streams", static_cast<double>(c.streams));
      t.Set("packets_received", static_cast<double>(c.packets_received));
      t.Set("packets_sent", static_cast<double>(c.packets_sent));
      t.Set("wakeups", static_cast<double>(c.wakeups));
      t.Set("cpu_seconds", w->cpu_seconds());
      t.Set("io", w->rings() ? "io_uring" : "epoll");
      t.Set("late_ticks", static_cast<double>(c.late_ticks));
      threads.Set(n++, t);
    }
    const auto ports = engine.ports().counts(media::mono_us());
    auto o = Napi::Object::New(env);
    o.Set("threads", threads);
    o.Set("ports_in_use", static_cast<double>(ports.in_use));
    o.Set("ports_quarantined", static_cast<double>(ports.quarantined));
    o.Set("ports_total", static_cast<double>(ports.total));
    o.Set("events_lost", static_cast<double>(engine.events().lost()));
    o.Set("recordings", static_cast<double>(engine.recorder().active()));
    o.Set("recording_packets_dropped", static_cast<double>(engine.recorder().dropped()));
    return o;
  }

  void close(const Napi::CallbackInfo&) { shut(); }

  using Tsfn = Napi::TypedThreadSafeFunction<EngineSkin, void, &EngineSkin::on_events>;
  Tsfn deliver_;
  std::unique_ptr<media::Engine> engine_;
  napi_env env_ = nullptr;
  uint64_t lost_told_ = 0;
  bool closed_ = false;
};

Napi::Value features(const Napi::CallbackInfo& i) {
  media::open_g729(i[0].ToBoolean());
  auto codecs = Napi::Array::New(i.Env());
  uint32_t n = 0;
  for (const auto& c : media::codecs())
    if (c.available()) codecs.Set(n++, c.name);
  auto suites = Napi::Array::New(i.Env());
  n = 0;
  for (const auto& s : media::srtp_suites()) suites.Set(n++, s.name);
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

const media::Codec& codec_named(const Napi::CallbackInfo& i) {
  const std::string name = i[0].ToString().Utf8Value();
  media::open_g729(true);
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

Napi::Value decode_all(const Napi::CallbackInfo& i) {
  const auto& codec = codec_named(i);
  const auto in = bytes(i[1]);
  auto decoder = codec.decoder(0);
  std::vector<int16_t> out;
  std::vector<int16_t> pcm(media::kMaxFrameSamples);
  for (size_t at = 0; at + 2 <= in.size();) {
    const size_t n = static_cast<size_t>(in[at]) << 8 | in[at + 1];
    at += 2;
    if (at + n > in.size()) break;
    const int frame = codec.sample_rate / 50;
    int made = frame;
    if (n == 0)
      decoder->conceal(pcm.data(), frame, nullptr, 0);
    else
      made = decoder->decode(&in[at], static_cast<int>(n), pcm.data(), media::kMaxFrameSamples);
    if (made > 0) out.insert(out.end(), pcm.begin(), pcm.begin() + made);
    at += n;
  }
  return int16s(i.Env(), out);
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  auto* constructor = new Napi::FunctionReference(Napi::Persistent(EngineSkin::define(env)));
  env.AddCleanupHook([constructor] { delete constructor; });
  exports.Set("createEngine", Napi::Function::New(env, [constructor](const Napi::CallbackInfo& i) -> Napi::Value {
                return constructor->New({i[0], i[1]});
              }));
  exports.Set("features", Napi::Function::New(env, features));
  exports.Set("resample", Napi::Function::New(env, resample));
  exports.Set("encodeTest", Napi::Function::New(env, encode_all));
  exports.Set("decodeTest", Napi::Function::New(env, decode_all));
  return exports;
}

}  // namespace

NODE_API_MODULE(media, init)
