#include "engine.h"

#include <algorithm>

#include "clock.h"

namespace media {

Engine::Engine(EngineOptions o)
    : denied_(std::move(o.denied)),
      events_(o.event_queue),
      ports_(o.bind, o.port_min, o.port_max, o.quarantine_ms * 1000, o.second_bind, static_cast<unsigned>(o.threads)),
      recorder_(events_) {
  for (int i = 0; i < o.threads; ++i)
    workers_.push_back(std::make_unique<Worker>(i, o.worker, events_, recorder_, denied_, ports_));
}

Engine::~Engine() {
  close();
}

void Engine::close() {
  for (auto& w : workers_) w->stop();
  recorder_.stop();
}

uint32_t Engine::open_session() {
  Worker* least = workers_[0].get();
  for (auto& w : workers_)
    if (w->load < least->load) least = w.get();
  ++least->load;
  char name[24];
  std::snprintf(name, sizeof name, "%08x%08x", random32(), random32());
  sessions_[next_id_] = {least, name};
  return next_id_++;
}

void Engine::close_session(uint32_t session) {
  const auto at = sessions_.find(session);
  if (at == sessions_.end()) return;
  --at->second.worker->load;
  sessions_.erase(at);
}

bool Engine::open_stream(uint32_t session, Policy policy, Opened& out) {
  const auto at = sessions_.find(session);
  PortPair pair;
  if (at == sessions_.end()) return false;
  Worker* worker = at->second.worker;
  if (!ports_.open(pair, mono_us(), policy.family, worker->index())) return false;
  if (pair.family == 4) worker->want_packet_ring();
  const uint32_t id = next_id_++;
  auto counters = std::make_shared<StreamCounters>();
  streams_[id] = {worker, session, counters, 0, nullptr};
  worker->post([=, policy = std::move(policy), cname = at->second.cname](uint64_t now) {
    worker->open(id, policy, pair, counters, cname, now);
  });
  out = {id, pair.rtp_port, pair.rtcp_port};
  return true;
}

void Engine::close_stream(uint32_t id) {
  const auto at = streams_.find(id);
  if (at == streams_.end()) return;
  Worker* worker = at->second.worker;
  streams_.erase(at);
  worker->post([=](uint64_t now) { worker->close(id, now); });
}

void Engine::with(uint32_t id, std::function<void(Stream&, uint64_t)> act) {
  const auto at = streams_.find(id);
  if (at == streams_.end()) return;
  Worker* worker = at->second.worker;
  worker->post([=, act = std::move(act)](uint64_t now) {
    if (Stream* s = worker->find(id)) act(*s, now);
  });
}

void Engine::describe(uint32_t id, StreamConfig config) {
  with(id, [config = std::move(config)](Stream& s, uint64_t now) { s.describe(config, now); });
}

void Engine::bridge(uint32_t a, uint32_t b) {
  const auto at = streams_.find(a);
  if (at == streams_.end()) return;
  Worker* worker = at->second.worker;
  worker->post([=](uint64_t now) {
    Stream* sa = worker->find(a);
    Stream* sb = worker->find(b);
    if (!sa || !sb) return;
    for (Stream* s : {sa, sb})
      if (s->peer() && s->peer() != sa && s->peer() != sb) s->peer()->send_to(nullptr, now);
    sa->send_to(sb, now);
    if (sa != sb) sb->send_to(sa, now);
  });
}

void Engine::unbridge(uint32_t a) {
  with(a, [](Stream& s, uint64_t now) {
    if (s.peer() && s.peer() != &s) s.peer()->send_to(nullptr, now);
    s.send_to(nullptr, now);
  });
}

void Engine::record(RecordRequest request) {
  const auto at = streams_.find(request.left);
  if (at == streams_.end()) return;
  Worker* worker = at->second.worker;
  auto recording = std::make_shared<Recording>(request.config, worker->chunks());
  const bool stereo = request.config.channels == 2;
  const bool sent = stereo ? request.right == 0 : request.both || request.sent_only;
  // Its packets still give the keys, the silence and the end of the leg.
  recording->set_channel(0, request.sent_only ? Recording::kUnheard : 0);
  recording->set_channel(1, stereo ? 1 : 0);
  recording->set_channel(2, stereo ? 1 : 0);
  recording->writer_open(mono_us());
  recorder_.add(recording);
  recordings_[recording->id()] = {recording, worker, request.left, request.right};
  worker->post([=, left = request.left, right = request.right](uint64_t now) {
    Stream* l = worker->find(left);
    Stream* r = right ? worker->find(right) : nullptr;
    if (!l) {
      recording->packet_end(RecordEnd::leg_closed, now);
      return;
    }
    l->record(recording, 0, false);
    if (r) r->record(recording, 1, false);
    if (sent) l->record(recording, 2, true);
  });
}

void Engine::record_conference(uint32_t conference, RecordRequest request) {
  const auto at = conferences_.find(conference);
  if (at == conferences_.end()) return;
  Worker* worker = at->second.worker;
  auto recording = std::make_shared<Recording>(request.config, worker->chunks());
  const uint32_t named = request.config.channels == 2 ? request.left : 0;
  recording->set_channel(0, named ? 1 : 0);
  recording->set_channel(1, 0);
  recording->writer_open(mono_us());
  recorder_.add(recording);
  recordings_[recording->id()] = {recording, worker, 0, 0, conference};
  worker->post([=, recorder = &recorder_](uint64_t now) {
    if (Conference* room = worker->find_conference(conference)) return room->record(recording, named);
    recording->packet_end(RecordEnd::leg_closed, now);
    recorder->wake();
  });
}

void Engine::stop_record(const std::string& id) {
  const auto at = recordings_.find(id);
  if (at == recordings_.end()) return;
  auto recording = at->second.recording;
  at->second.worker->post([recording, recorder = &recorder_](uint64_t now) {
    recording->packet_end(RecordEnd::stopped, now);
    recorder->wake();
  });
}

void Engine::pause_record(const std::string& id, bool paused, bool silent) {
  const auto at = recordings_.find(id);
  if (at == recordings_.end()) return;
  at->second.worker->post([=, recording = at->second.recording, events = &events_](uint64_t now) {
    recording->packet_pause(paused, silent, now);
    Event e;
    e.type = EventType::record_changed;
    e.id = recording->id();
    events->push(std::move(e));
  });
}

void Engine::forget_record(const std::string& id) {
  const auto at = recordings_.find(id);
  if (at == recordings_.end()) return;
  auto recording = at->second.recording;
  for (const uint32_t stream : {at->second.left, at->second.right})
    if (stream) with(stream, [recording](Stream& s, uint64_t) { s.unrecord(recording.get()); });
  if (const uint32_t conference = at->second.conference)
    at->second.worker->post([=, worker = at->second.worker](uint64_t) {
      if (Conference* room = worker->find_conference(conference)) room->unrecord(recording.get());
    });
  recordings_.erase(at);
}

uint32_t Engine::open_conference(int rate_hz) {
  Worker* least = workers_[0].get();
  for (auto& w : workers_)
    if (w->load < least->load) least = w.get();
  const uint32_t id = next_id_++;
  conferences_[id] = {least, rate_hz};
  least->post([=](uint64_t) { least->open_conference(id, rate_hz); });
  return id;
}

void Engine::close_conference(uint32_t id) {
  const auto at = conferences_.find(id);
  if (at == conferences_.end()) return;
  Worker* worker = at->second.worker;
  conferences_.erase(at);
  for (auto& [stream, entry] : streams_)
    if (entry.conference == id) leave(stream);
  worker->post([=](uint64_t) { worker->close_conference(id); });
}

void Engine::join(uint32_t conference, uint32_t stream, bool muted, bool deaf, uint32_t heard_by) {
  const auto c = conferences_.find(conference);
  const auto s = streams_.find(stream);
  if (c == conferences_.end() || s == streams_.end()) return;
  if (s->second.conference == conference) {
    s->second.port->muted = muted;
    s->second.port->deaf = deaf;
    s->second.port->heard_by = heard_by;
    return;
  }
  auto port = std::make_shared<ConferencePort>(c->second.rate_hz);
  port->muted = muted;
  port->deaf = deaf;
  port->stream = stream;
  port->heard_by = heard_by;
  s->second.conference = conference;
  s->second.port = port;
  with(stream, [port](Stream& st, uint64_t now) { st.join(port, now); });
  Worker* worker = c->second.worker;
  worker->post([=](uint64_t) {
    if (Conference* at = worker->find_conference(conference)) at->add(port);
  });
}

void Engine::leave(uint32_t stream) {
  const auto s = streams_.find(stream);
  if (s == streams_.end() || !s->second.conference) return;
  s->second.conference = 0;
  s->second.port.reset();
  with(stream, [](Stream& st, uint64_t now) { st.leave(now); });
}

std::shared_ptr<StreamCounters> Engine::counters(uint32_t id) {
  const auto at = streams_.find(id);
  return at == streams_.end() ? nullptr : at->second.counters;
}

}  // namespace media
