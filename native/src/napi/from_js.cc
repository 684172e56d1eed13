#include <cctype>

#include "values.h"

namespace media::skin {

std::vector<Network> networks(const Napi::Value& v) {
  std::vector<Network> out;
  if (!v.IsArray()) return out;
  const auto list = v.As<Napi::Array>();
  for (uint32_t i = 0; i < list.Length(); ++i) {
    Network n;
    if (Network::parse(list.Get(i).ToString().Utf8Value(), n)) out.push_back(n);
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

static PayloadFacts payload(const Napi::Object& o, PayloadKind kind) {
  PayloadFacts f;
  std::string name = text(o, "codec");
  for (auto& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  f.kind = kind;
  f.payload_type = static_cast<uint8_t>(number(o, "payload_type"));
  f.clock_rate = static_cast<uint32_t>(number(o, "clock_rate", 8000));
  f.name = intern(name);
  const Codec* codec = find_codec(name, static_cast<int>(f.clock_rate));
  if (codec) f.codec = codec->id;
  return f;
}

StreamConfig description(const Napi::Object& o) {
  StreamConfig c;
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
  const auto each = [&](const Napi::Value& list, PayloadKind kind) {
    if (!list.IsArray()) return;
    const auto a = list.As<Napi::Array>();
    for (uint32_t i = 0; i < a.Length(); ++i) c.receive.push_back(payload(a.Get(i).As<Napi::Object>(), kind));
  };
  each(o.Get("receive"), PayloadKind::audio);
  if (present(o.Get("telephone_event"))) {
    const auto t = o.Get("telephone_event").As<Napi::Object>();
    each(t.Get("receive"), PayloadKind::telephone_event);
    if (present(t.Get("send"))) {
      c.sends_events = true;
      c.event = payload(t.Get("send").As<Napi::Object>(), PayloadKind::telephone_event);
    }
  }
  if (o.Get("comfort_noise").IsArray()) {
    const auto a = o.Get("comfort_noise").As<Napi::Array>();
    for (uint32_t i = 0; i < a.Length(); ++i) {
      PayloadFacts f;
      f.kind = PayloadKind::comfort_noise;
      f.payload_type = static_cast<uint8_t>(a.Get(i).ToNumber().Uint32Value() & 0x7f);
      f.name = intern("CN");
      c.receive.push_back(f);
    }
  }
  if (present(o.Get("send"))) {
    const auto s = o.Get("send").As<Napi::Object>();
    c.sends = true;
    c.send = payload(s, PayloadKind::audio);
    c.ptime_ms = static_cast<int>(number(s, "ptime_ms", 20));
    c.max_ptime_ms = static_cast<int>(number(s, "max_ptime_ms"));
    c.comfort_noise_pt = static_cast<int>(number(s, "comfort_noise", -1));
    c.fec = flag(s, "fec");
    c.dtx = flag(s, "dtx");
    c.silence_frames = flag(s, "silence_frames");
    c.bitrate = static_cast<int>(number(s, "bitrate"));
  }
  c.fills_idle = flag(o, "fills_idle");
  if (present(o.Get("srtp"))) {
    const auto s = o.Get("srtp").As<Napi::Object>();
    const auto* suite = find_srtp_suite(text(s, "suite"));
    c.secured = true;
    if (suite) c.suite = suite->suite;
    c.receive_key = bytes(s.Get("receive_key"));
    c.send_key = bytes(s.Get("send_key"));
  }
  return c;
}

std::vector<Piece> pieces(const Napi::Array& list) {
  std::vector<Piece> out;
  for (uint32_t i = 0; i < list.Length(); ++i) {
    const auto o = list.Get(i).As<Napi::Object>();
    const std::string kind = text(o, "kind");
    Piece p;
    if (kind == "pcm") {
      p.kind = Piece::Kind::pcm;
      p.samples = samples(o.Get("samples"));
      p.rate_hz = static_cast<int>(number(o, "rate_hz"));
    } else if (kind == "tone") {
      p.kind = Piece::Kind::tone;
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

RecordRequest record_request(const Napi::Object& o) {
  RecordRequest r;
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
  r.sent_only = flag(o, "sent_only");
  return r;
}

EngineOptions engine_options(const Napi::Object& o) {
  EngineOptions options;
  options.threads = static_cast<int>(number(o, "threads", 1));
  Address::parse(text(o, "bind_address"), 0, options.bind);
  Address::parse(text(o, "second_bind_address"), 0, options.second_bind);
  options.port_min = static_cast<uint16_t>(number(o, "port_min"));
  options.port_max = static_cast<uint16_t>(number(o, "port_max"));
  options.quarantine_ms = static_cast<uint64_t>(number(o, "quarantine_ms"));
  options.denied = networks(o.Get("denied"));
  options.worker.coalesce_us = static_cast<unsigned>(number(o, "coalesce_us"));
  options.worker.io_uring = flag(o, "io_uring");
  options.worker.packet_ring = flag(o, "packet_ring");
  options.worker.realtime = flag(o, "realtime");
  options.worker.opus_complexity = static_cast<int>(number(o, "opus_complexity"));
  options.event_queue = static_cast<size_t>(number(o, "event_queue"));
  return options;
}

}  // namespace media::skin
