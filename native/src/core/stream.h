// One RTP stream of a leg. No socket here: packets come by on_rtp and leave by the Wire, so that tests run it with a
// clock of their own.
//
// A stream is a Receiver, a Sender, and the Sources that it sends by itself. Packetiser encodes what it makes,
// Listening decodes what it receives, Reports is its RTCP. Each part keeps its own state and reaches the others, and
// those of the stream that it sends to, by the functions at the end of the class.
//
// Thread: all of it belongs to one packet thread. Other threads read the StreamCounters, and nothing else.
// Memory: the receiver's five lines come first, then, behind the receiver's rare state, the sender's three. A relayed
// packet touches the five of its own stream and the three of the stream that it goes to.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config.h"
#include "counters.h"
#include "events.h"
#include "listening.h"
#include "packetiser.h"
#include "receiver.h"
#include "reports.h"
#include "sender.h"
#include "sources.h"
#include "timer.h"
#include "wire.h"

namespace media {

class Stream {
 public:
  Stream(uint32_t id, Policy policy, ThreadContext& context, Wire& wire, std::shared_ptr<StreamCounters> counters,
         std::string cname, uint64_t now_us);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Packets
  void on_rtp(uint8_t* packet, size_t n, const Address& from, uint64_t now_us) {
    receiver_.on_rtp(packet, n, from, now_us);
  }
  void on_rtcp(uint8_t* packet, size_t n, const Address& from, uint64_t now_us, bool muxed) {
    reports_.on_rtcp(packet, n, from, now_us, muxed);
  }
  /** A packet that was accepted could not be sent after all: packets leave many at a time. */
  void sending_failed() { sender_.sending_failed(); }

  // The lines of memory that the next packet of this stream will want: its own, then those of the stream that it goes
  // to, then those of that one's outlet. Each step reads what the one before has fetched.
  void fetch() const { receiver_.fetch(); }
  void fetch_peer() const {
    receiver_.fetch_counters();
    if (const Stream* to = peer()) to->sender_.fetch();
  }
  void fetch_outlet() const {
    receiver_.fetch_recording();
    if (const Stream* to = peer()) to->sender_.fetch_outlet();
  }
  void fetch_record() const { receiver_.fetch_recording_room(); }

  // Commands
  /** Takes over what an offer and an answer have settled. */
  void describe(StreamConfig config, uint64_t now_us);
  /** Sends what this stream receives to another. Null ends it. Each direction is a call of its own. */
  void send_to(Stream* peer, uint64_t now_us);
  void relay_keys(bool enabled) { receiver_.keys().pass_on(enabled); }
  void play(std::unique_ptr<Player> player, uint64_t now_us) { sources_.play(std::move(player), now_us); }
  void stop_play(const std::string& id) { sources_.stop_play(id); }
  void feed(std::shared_ptr<const std::vector<int16_t>> samples, int rate_hz, uint64_t now_us) {
    sources_.feed(std::move(samples), rate_hz, now_us);
  }
  void feed_mark(std::string name) { sources_.feed_mark(std::move(name)); }
  void feed_clear() { sources_.feed_clear(); }
  void send_keys(KeySender::Request request, uint64_t now_us) { sources_.send_keys(std::move(request), now_us); }
  void detect(bool inband, bool voice, bool tones, uint64_t now_us) {
    listening_.detect(inband, voice, tones, now_us);
  }
  void tap(std::string id, bool sent, int rate_hz, int chunk_ms, uint64_t now_us);
  void untap(const std::string& id, uint64_t now_us);
  void record(std::shared_ptr<Recording> recording, int track, bool sent);
  void unrecord(const Recording* recording);
  void join(std::shared_ptr<ConferencePort> port, uint64_t now_us);
  void leave(uint64_t now_us);
  void send_rtcp_packet(const uint8_t* packet, size_t n) { reports_.send_packet(packet, n); }
  void take_raw(bool enabled) { receiver_.take_raw(enabled); }
  void send_raw(const uint8_t* packet, size_t n, const Address& to) { wire_.send_rtp(packet, n, to); }
  /** Sends BYE, and ends everything that hangs on this stream. */
  void close(uint64_t now_us);

  // What the parts of streams reach each other by
  uint32_t id() const { return id_; }
  Stream* peer() const { return receiver_.peer(); }
  /** The streams whose peer this is. */
  const std::vector<Stream*>& feeders() const { return feeders_; }
  const StreamConfig& config() const { return config_; }
  const Policy& policy() const { return policy_; }
  bool closed() const { return closed_; }
  StreamCounters& counters() const { return *counters_; }
  ThreadContext& context() const { return context_; }
  Wire& wire() const { return wire_; }
  Receiver& receiver() { return receiver_; }
  Sender& sender() { return sender_; }
  Sources& sources() { return sources_; }
  Packetiser& packetiser() { return packetiser_; }
  const Packetiser& packetiser() const { return packetiser_; }
  Listening& listening() { return listening_; }
  Reports& reports() { return reports_; }
  Event event_of(EventType type) const;
  void tell(Event&& e) const { context_.events.push(std::move(e)); }
  void tell(EventType type, int64_t a = 0, int64_t b = 0, const char* text = "") const;

 private:
  void second_tick(uint64_t now_us);

  Receiver receiver_;
  Sender sender_;
  alignas(kLine) const uint32_t id_;
  const Policy policy_;
  ThreadContext& context_;
  Wire& wire_;
  const std::shared_ptr<StreamCounters> counters_;
  StreamConfig config_;
  std::vector<Stream*> feeders_;
  bool closed_ = false;
  Sources sources_;
  Packetiser packetiser_;
  Listening listening_;
  Reports reports_;
  Timer second_timer_;
};

}  // namespace media
