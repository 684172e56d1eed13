#include "stream.h"

#include <mutex>
#include <set>
#include <utility>

namespace media {

const char* intern(const std::string& name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

Stream::Stream(uint32_t id, Policy policy, ThreadContext& context, Wire& wire, std::shared_ptr<StreamCounters> counters,
               std::string cname, uint64_t now_us)
    : receiver_(*this, *counters, context, now_us),
      sender_(*this, *counters, wire, context, now_us),
      id_(id),
      policy_(std::move(policy)),
      context_(context),
      wire_(wire),
      counters_(std::move(counters)),
      sources_(*this),
      packetiser_(*this),
      listening_(*this),
      reports_(*this, std::move(cname), now_us) {
  second_timer_.bind([](void* s, uint64_t now) { static_cast<Stream*>(s)->second_tick(now); }, this);
  context_.wheel.set(second_timer_, now_us + 100'000 + random32() % 900'000);
}

Stream::~Stream() {
  closed_ = true;
  send_to(nullptr, 0);
  for (auto* s : feeders_) s->receiver_.send_to(nullptr);
}

Event Stream::event_of(EventType type) const {
  Event e;
  e.type = type;
  e.stream = id_;
  return e;
}

void Stream::tell(EventType type, int64_t a, int64_t b, const char* text) const {
  Event e = event_of(type);
  e.a = a;
  e.b = b;
  e.text = text;
  tell(std::move(e));
}

void Stream::describe(StreamConfig next, uint64_t now_us) {
  const bool denied = context_.denied && any_holds(*context_.denied, next.remote_rtp);
  if (denied) next.remote_rtp = next.remote_rtcp = Address{};
  next.reachable = next.remote_rtp.known();
  if (!next.reachable) {
    next.may_send = false;
    // The hold of RFC 2543, c=0.0.0.0, moves the peer nowhere: its music comes from where its audio came from. ICE
    // names a browser's addresses.
    if (!denied && !receiver_.takes_raw()) {
      next.remote_rtp = config_.remote_rtp;
      next.remote_rtcp = config_.remote_rtcp;
    }
  }
  const bool moves = !(next.remote_rtp == config_.remote_rtp);
  receiver_.describe(config_, next, now_us);
  sender_.describe(config_, next);
  packetiser_.describe(config_, next);
  reports_.describe(config_, next, sender_.address());
  config_ = std::move(next);
  if (moves) wire_.settled(Address{});
  listening_.update(now_us);
  for (auto* s : feeders_) s->listening_.update(now_us);
  sources_.look_idle(now_us);
  if (Stream* to = peer()) to->sources_.look_idle(now_us);
}

void Stream::send_to(Stream* peer, uint64_t now_us) {
  if (Stream* before = receiver_.peer()) {
    std::erase(before->feeders_, this);
    before->sources_.end_pause();
    before->sources_.look_idle(now_us);
  }
  receiver_.send_to(peer);
  if (peer) {
    peer->feeders_.push_back(this);
    peer->sender_.split_relay();
    peer->sources_.look_idle(now_us);
  }
  if (!closed_) listening_.update(now_us);
}

void Stream::tap(TapOptions options, uint64_t now_us) {
  sender_.taps().add(std::move(options), now_us);
  listening_.update(now_us);
}

void Stream::untap(const std::string& id, uint64_t now_us) {
  sender_.taps().remove(id);
  listening_.update(now_us);
}

void Stream::record(std::shared_ptr<Recording> recording, int track, bool sent) {
  RecordTrack t{std::move(recording), track};
  if (sent)
    sender_.record(std::move(t));
  else
    receiver_.record(std::move(t));
}

void Stream::unrecord(const Recording* recording) {
  receiver_.unrecord(recording);
  sender_.unrecord(recording);
}

void Stream::join(std::shared_ptr<ConferencePort> port, uint64_t now_us) {
  leave(now_us);
  sources_.join(std::move(port));
  packetiser_.reset_encoder();
  listening_.update(now_us);
  sources_.start_clock(now_us);
}

void Stream::leave(uint64_t now_us) {
  if (sources_.leave()) listening_.update(now_us);
}

void Stream::close(uint64_t now_us) {
  if (closed_) return;
  reports_.send_report(true, now_us);
  closed_ = true;
  sources_.close();
  leave(now_us);
  send_to(nullptr, now_us);
  const std::vector<Stream*> feeders = feeders_;
  for (auto* s : feeders) s->send_to(nullptr, now_us);
  receiver_.end_recordings(now_us);
  sender_.end_recordings();
  listening_.stop();
  sources_.stop_clock();
  second_timer_.cancel();
}

void Stream::second_tick(uint64_t now_us) {
  context_.wheel.set(second_timer_, now_us + 1'000'000);
  wire_.look_after(now_us);
  receiver_.second_tick(now_us);
  sources_.look_idle(now_us);
  reports_.tick(now_us);
}

}  // namespace media
