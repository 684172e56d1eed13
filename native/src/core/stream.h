// One RTP stream of a leg. It has no socket: packets enter through on_rtp and leave through the Wire, so that tests can
// run it with a simulated clock.
//
// A stream consists of a Receiver, a Sender, and Sources of its own audio. Packetiser encodes that audio, Listening
// decodes received audio, and Reports handles RTCP. Each part keeps its own state. It reaches the other parts, and
// those of the stream that it sends to, through the functions at the end of the class.
//
// Thread: one packet thread owns the stream. Other threads read only its StreamCounters.
// Memory: the receiver's five cache lines come first, then the receiver's rarely used state, then the sender's three
// lines. A relayed packet touches the five lines of its own stream and the three of the stream that sends it.
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
  /** Counts a packet that the Wire accepted for a batch but later failed to send. */
  void sending_failed() { sender_.sending_failed(); }

  // Prefetch the cache lines for the next packet of this stream: first the stream's own, then those of the stream that
  // sends the packet, then those of its outlet. Each step reads what the previous one has fetched.
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
  /** Applies the outcome of an offer/answer exchange. */
  void describe(StreamConfig config, uint64_t now_us);
  /** Sends the packets that this stream receives through another stream; null stops this. Covers one direction. */
  void send_to(Stream* peer, uint64_t now_us);
  void relay_keys(bool enabled) { receiver_.keys().pass_on(enabled); }
  void hear_key(char digit, uint64_t now_us) { receiver_.keys().informed(digit, now_us); }
  void play(std::unique_ptr<Player> player, uint64_t now_us) { sources_.play(std::move(player), now_us); }
  void stop_play(const std::string& id) { sources_.stop_play(id); }
  void feed(std::shared_ptr<const std::vector<int16_t>> samples, int rate_hz, bool yields, uint64_t now_us) {
    sources_.feed(std::move(samples), rate_hz, yields, now_us);
  }
  void announce(std::shared_ptr<const std::vector<int16_t>> samples, int rate_hz, uint64_t now_us) {
    sources_.announce(std::move(samples), rate_hz, now_us);
  }
  void feed_mark(std::string name) { sources_.feed_mark(std::move(name)); }
  void feed_clear() { sources_.feed_clear(); }
  void send_keys(KeySender::Request request, uint64_t now_us) { sources_.send_keys(std::move(request), now_us); }
  void detect(bool inband, bool voice, bool tones, uint64_t now_us) {
    listening_.detect(inband, voice, tones, now_us);
  }
  /** Reports the peer's speech from now on, or no longer (null). */
  void watch_speech(const SpeechWatchOptions* options, uint64_t now_us) { listening_.watch_speech(options, now_us); }
  void tap(TapOptions options, uint64_t now_us);
  void untap(const std::string& id, uint64_t now_us);
  void record(std::shared_ptr<Recording> recording, int track, bool sent);
  void unrecord(const Recording* recording);
  void join(std::shared_ptr<ConferencePort> port, uint64_t now_us);
  void leave(uint64_t now_us);
  void send_rtcp_packet(const uint8_t* packet, size_t n) { reports_.send_packet(packet, n); }
  void take_raw(bool enabled) { receiver_.take_raw(enabled); }
  void prove(std::vector<Address> proved) { receiver_.prove(std::move(proved)); }
  void send_raw(const uint8_t* packet, size_t n, const Address& to) { wire_.send_rtp(packet, n, to); }
  /** Sends BYE and ends everything that depends on this stream. */
  void close(uint64_t now_us);

  // Access for the parts of streams
  uint32_t id() const { return id_; }
  Stream* peer() const { return receiver_.peer(); }
  /** Returns the streams that send through this one. */
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
