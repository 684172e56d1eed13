#include <algorithm>

#include "../core/clock.h"
#include "values.h"

namespace media::skin {

Napi::Value int16s(Napi::Env env, const std::vector<int16_t>& v) {
  auto out = Napi::Int16Array::New(env, v.size());
  std::copy(v.begin(), v.end(), out.Data());
  return out;
}

namespace {

const char* name_of(EventType type) {
  switch (type) {
    case EventType::latched: return "latched";
    case EventType::first_packet: return "first_packet";
    case EventType::silent: return "silent";
    case EventType::srtp_failed: return "srtp_failed";
    case EventType::key: return "key";
    case EventType::play_ended: return "play_ended";
    case EventType::mark: return "mark";
    case EventType::digits_sent: return "digits_sent";
    case EventType::record_changed: return "record_changed";
    case EventType::record_ended: return "record_ended";
    case EventType::rtcp: return "rtcp";
    case EventType::voice: return "voice";
    case EventType::speech: return "speech";
    case EventType::feed_cut: return "feed_cut";
    case EventType::tone: return "tone";
    case EventType::tap: return "tap";
    case EventType::raw: return "raw";
    case EventType::none: return "";
  }
  return "";
}

void set_record_ended(Napi::Env env, Napi::Object o, const Event& e) {
  const bool by_key = e.text == "key";
  o.Set("recording_id", e.id);
  o.Set("reason", e.text);
  o.Set("key", by_key ? e.detail : std::string());
  o.Set("detail", by_key ? std::string() : e.detail);
  o.Set("duration_ms", static_cast<double>(e.a));
  o.Set("bytes", static_cast<double>(e.b));
  o.Set("sha256", e.sha256);
  o.Set("empty", e.flag);
  auto pauses = Napi::Array::New(env, e.pauses.size());
  for (uint32_t i = 0; i < e.pauses.size(); ++i) {
    auto pause = Napi::Object::New(env);
    pause.Set("at_ms", static_cast<double>(e.pauses[i].at_ms));
    pause.Set("length_ms", static_cast<double>(e.pauses[i].length_ms));
    pause.Set("silent", e.pauses[i].silent);
    pauses.Set(i, pause);
  }
  o.Set("pauses", pauses);
}

void set_tap(Napi::Env env, Napi::Object o, const Event& e) {
  o.Set("tap_id", e.id);
  o.Set("samples", int16s(env, e.samples));
  o.Set("offset_ms", static_cast<double>(e.a));
}

}  // namespace

Napi::Value to_js(Napi::Env env, const Event& e) {
  auto o = Napi::Object::New(env);
  const auto number = [&](const char* key) { o.Set(key, static_cast<double>(e.a)); };
  const auto packet = [&] { o.Set("packet", Napi::Buffer<uint8_t>::Copy(env, e.bytes.data(), e.bytes.size())); };
  const bool of_record = e.type == EventType::record_ended || e.type == EventType::record_changed;
  if (!of_record) o.Set("stream_id", e.stream);
  if (e.type != EventType::none) o.Set("type", name_of(e.type));
  switch (e.type) {
    case EventType::latched:
      o.Set("address", e.text);
      number("port");
      break;
    case EventType::first_packet:
      number("at_ms");
      break;
    case EventType::silent:
      number("for_ms");
      break;
    case EventType::key:
      o.Set("digit", e.text);
      number("duration_ms");
      o.Set("heard_ms", static_cast<double>(e.b));
      o.Set("source", e.id);
      o.Set("echo", e.flag);
      break;
    case EventType::play_ended:
      o.Set("play_id", e.id);
      o.Set("reason", e.text);
      number("played_ms");
      break;
    case EventType::mark:
      o.Set("name", e.text);
      break;
    case EventType::digits_sent:
      o.Set("send_id", e.id);
      o.Set("sent", e.flag);
      break;
    case EventType::record_changed:
      o.Set("recording_id", e.id);
      break;
    case EventType::record_ended:
      set_record_ended(env, o, e);
      break;
    case EventType::rtcp:
      packet();
      break;
    case EventType::voice:
      o.Set("speaking", e.flag);
      number("lasted_ms");
      break;
    case EventType::speech:
      o.Set("edge", e.text);
      number("quiet_ms");
      break;
    case EventType::feed_cut:
      o.Set("mark", e.text);
      number("played_ms");
      break;
    case EventType::tone:
      o.Set("tone", e.text);
      break;
    case EventType::tap:
      set_tap(env, o, e);
      break;
    case EventType::raw:
      packet();
      o.Set("address", e.text);
      number("port");
      break;
    case EventType::srtp_failed:
    case EventType::none:
      break;
  }
  return o;
}

Napi::Value to_js(Napi::Env env, const StreamCounters& c) {
  auto o = Napi::Object::New(env);
  const auto set = [&](const char* key, double v) { o.Set(key, v); };
  const auto count = [&](const char* key, uint64_t v) { o.Set(key, static_cast<double>(v)); };
  const auto maybe = [&](const char* key, bool known, double v) {
    if (known)
      o.Set(key, v);
    else
      o.Set(key, env.Null());
  };
  count("packets_received", c.packets_received);
  count("bytes_received", c.bytes_received);
  count("packets_sent", c.packets_sent);
  count("bytes_sent", c.bytes_sent);
  count("packets_lost", c.lost);
  count("packets_duplicate", c.duplicate);
  count("packets_reordered", c.reordered);
  count("loss_bursts", c.bursts);
  count("longest_burst", c.longest_burst);
  set("jitter_ms", c.jitter_ms);
  set("jitter_max_ms", c.jitter_max_ms);
  set("jitter_mean_ms", c.jitter_seconds == 0 ? c.jitter_ms : c.jitter_sum_ms / static_cast<double>(c.jitter_seconds));
  set("without_media_ms", static_cast<double>(c.gaps_ms + c.gap_ms));
  maybe("rtt_ms", c.rtt_known, c.rtt_ms);
  maybe("remote_fraction_lost", c.remote_known, c.remote_fraction_lost);
  maybe("remote_packets_lost", c.remote_known, static_cast<double>(c.remote_lost));
  maybe("remote_jitter_ms", c.remote_known, c.remote_jitter_ms);
  maybe("first_packet_at", c.first_packet_ms != 0, static_cast<double>(c.first_packet_ms));
  maybe("last_packet_at", c.last_packet_ms != 0, static_cast<double>(c.last_packet_ms));
  count("strangers_dropped", c.strangers);
  count("malformed_dropped", c.malformed);
  count("policed_dropped", c.policed);
  count("unexpected_dropped", c.unexpected);
  count("srtp_auth_failed", c.srtp_auth_failed);
  count("srtp_replayed", c.srtp_replayed);
  count("ssrc_changes", c.ssrc_changes);
  count("keys_received", c.keys_received);
  count("send_failed", c.send_failed);
  count("rtcp_received", c.rtcp_received);
  count("rtcp_sent", c.rtcp_sent);
  count("concealed_frames", c.concealed);
  count("late_frames", c.late);
  set("jitter_buffer_ms", c.jitter_buffer_ms);
  const char* in = c.receive_codec;
  const char* out = c.send_codec;
  o.Set("receive_codec", in ? in : "");
  o.Set("send_codec", out ? out : "");
  o.Set("latched", Napi::Boolean::New(env, c.latched));
  return o;
}

Napi::Value to_js(Napi::Env env, Engine& engine) {
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
    t.Set("packet_ring", w->packet_ring());
    t.Set("packet_ring_streams", static_cast<double>(c.packet_ring_streams));
    t.Set("packet_ring_drops", static_cast<double>(c.packet_ring_drops));
    t.Set("realtime", w->realtime());
    t.Set("late_ticks", static_cast<double>(c.late_ticks));
    threads.Set(n++, t);
  }
  const auto ports = engine.ports().counts(mono_us());
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

}  // namespace media::skin
