// One RTP stream of a leg, as its packet thread sees it. No socket here: packets come by on_rtp and leave by the Wire,
// so that tests can run it with a clock of their own.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comfort_noise.h"
#include "config.h"
#include "counters.h"
#include "decode_path.h"
#include "detect.h"
#include "events.h"
#include "player.h"
#include "recorder.h"
#include "rtcp.h"
#include "rtp.h"
#include "srtp.h"
#include "telephone_event.h"
#include "timer.h"

namespace media {

class ConferencePort;

/** Where packets leave. */
class Wire {
 public:
  virtual ~Wire() = default;
  virtual bool send_rtp(const uint8_t* p, size_t n, const Address& to) = 0;
  virtual bool send_rtcp(const uint8_t* p, size_t n, const Address& to) = 0;
  /** From now on packets of this address only; the socket may be connected. An unknown address: of any. */
  virtual void settled(const Address&) {}
  /** Once a second. */
  virtual void look_after(uint64_t) {}
};

/** What all streams of a packet thread share. */
struct ThreadContext {
  TimerWheel& wheel;
  EventQueue& events;
  Recorder* recorder = nullptr;
  const std::vector<Network>* denied = nullptr;
  ThreadCounters* counters = nullptr;
  int opus_complexity = 5;
};

/** The buffer of a received packet has this much room behind it, for what SRTP adds. */
constexpr size_t kTailRoom = 64;

class Stream {
 public:
  Stream(uint32_t id, Policy policy, ThreadContext& context, Wire& wire, std::shared_ptr<StreamCounters> counters,
         std::string cname, uint64_t now_us);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  uint32_t id() const { return id_; }
  void describe(StreamConfig config, uint64_t now_us);
  void on_rtp(uint8_t* packet, size_t n, const Address& from, uint64_t now_us);
  void on_rtcp(uint8_t* packet, size_t n, const Address& from, uint64_t now_us, bool muxed);

  /** Null ends it. Both directions are said by two calls. */
  void send_to(Stream* peer, uint64_t now_us);
  Stream* peer() const { return peer_; }
  void relay_keys(bool enabled) { relay_keys_ = enabled; }

  void play(std::unique_ptr<Player> player, uint64_t now_us);
  void stop_play(const std::string& id, uint64_t now_us);
  void feed(std::shared_ptr<const std::vector<int16_t>> samples, int rate_hz, uint64_t now_us);
  void feed_mark(std::string name, uint64_t now_us);
  void feed_clear();
  void send_keys(KeySender::Request request, uint64_t now_us);
  void detect(bool inband, bool voice, bool tones, uint64_t now_us);
  void tap(std::string id, bool sent, int rate_hz, int chunk_ms, uint64_t now_us);
  void untap(const std::string& id, uint64_t now_us);
  void record(std::shared_ptr<Recording> recording, int track, bool sent);
  void unrecord(const Recording* recording);
  void join(std::shared_ptr<ConferencePort> port, uint64_t now_us);
  void leave(uint64_t now_us);
  void send_rtcp_packet(const uint8_t* packet, size_t n);
  /** STUN and DTLS (RFC 7983) of a browser's leg go to the outside instead of being malformed RTP. */
  void take_raw(bool enabled) { takes_raw_ = enabled; }
  void send_raw(const uint8_t* packet, size_t n, const Address& to) { wire_.send_rtp(packet, n, to); }

  // The lines of memory that the next packet of this stream will want: its own, then those of the stream that it goes
  // to, then those of that one's outlet. Each step reads what the one before has fetched.
  void fetch() const { fetch_lines(this, static_cast<size_t>(bytes(&ssrc_) - bytes(this))); }
  void fetch_peer() const {
    __builtin_prefetch(counted_, 1);
    if (!record_received_.empty()) __builtin_prefetch(record_received_.data());
    if (!peer_) return;
    __builtin_prefetch(peer_, 1);
    fetch_lines(&peer_->ssrc_, static_cast<size_t>(bytes(&id_) - bytes(&ssrc_)));
  }
  void fetch_outlet() const {
    if (!record_received_.empty()) record_received_[0].recording->fetch();
    if (!peer_) return;
    __builtin_prefetch(&peer_->counted_->packets_sent, 1);
    __builtin_prefetch(&peer_->wire_, 1);
  }

  void fetch_record() const {
    if (!record_received_.empty()) record_received_[0].recording->fetch_room();
  }

  /** Told later, when packets leave many at a time. */
  void sending_failed() { ++counters_->send_failed; }

  /** BYE, and an end to everything that hangs on this stream. */
  void close(uint64_t now_us);

  const SrtpContext* sender_context() const { return srtp_tx_.get(); }

 private:
  static const char* bytes(const void* p) { return static_cast<const char*>(p); }
  static void fetch_lines(const void* from, size_t n) {
    for (size_t at = 0; at < n; at += 64) __builtin_prefetch(bytes(from) + at, 1);
  }
  struct Candidate {
    Address from;
    uint32_t ssrc = 0;
    uint16_t next_seq = 0;
    int count = 0;
  };
  enum class Source : uint8_t { none, relay, made, keys };
  struct alignas(32) RecordTrack {  // never in two lines of memory
    std::shared_ptr<Recording> recording;
    int track;
  };
  struct Tap {
    std::string id;
    bool sent;
    int rate_hz;
    size_t chunk;
    std::vector<int16_t> held;
    std::unique_ptr<Resampler> resampler;
    uint64_t emitted = 0;
  };

  // receiving
  bool admit(const Address& from, const RtpView& v, bool authenticated, uint64_t now_us);
  bool reports_from(const Address& from, bool muxed) const;
  bool trusted(const Address& from) const;
  bool outranks(const Address& from, uint64_t now_us) const;
  void latch(const Address& from);
  bool policed(uint64_t now_us);
  void on_raw(const uint8_t* packet, size_t n, const Address& from, uint64_t now_us);
  const PayloadFacts* payload_facts(uint8_t pt);
  void on_audio(uint8_t* packet, const RtpView& v, const PayloadFacts& facts, uint64_t now_us);
  void pass(uint8_t* packet, const RtpView& v, const PayloadFacts& facts, uint64_t now_us);
  void on_event(uint8_t* packet, const RtpView& v, const PayloadFacts& facts, uint64_t now_us);
  void begin_key(uint32_t ts);
  void told_key(const KeyReceiver::Key& key, bool inband, uint64_t now_us);
  SrtpResult unprotect(uint8_t* packet, size_t& n, uint64_t now_us);
  bool needs_decoding() const;
  void update_decoding(uint64_t now_us);
  int decode_rate() const;
  void decode_tick(uint64_t now_us);

  // sending
  bool may_take_relay() const { return sends_ && may_send_ && !clocked_ && send_address_.known(); }
  void relay(uint8_t* packet, const RtpView& v, const PayloadFacts& facts, uint64_t now_us);
  void skip_relay(const RtpView& v);
  void relay_event(const RtpView& v, const TelephoneEvent& e, const PayloadFacts& facts, uint64_t now_us);
  void take_pcm(const int16_t* pcm, int samples, int rate_hz, uint64_t now_us, Heard heard = Heard::sound);
  void packetise(const int16_t* pcm, int samples, Heard heard, uint64_t now_us);
  void tell_pause(const int16_t* pcm, size_t samples, uint64_t now_us);
  void sound_pause(const uint8_t* payload, size_t n, uint64_t now_us);
  void end_pause();
  void splice(Source source, uint64_t now_us);
  uint32_t present_ts(uint64_t now_us) const;
  void emit(uint8_t* packet, size_t payload, uint8_t pt, bool marker, uint16_t seq, uint32_t ts, uint64_t now_us);
  bool use_encoder();
  int encoder_rate();
  void start_clock(uint64_t now_us);
  bool has_clocked_source() const;
  void clock_tick(uint64_t now_us);
  bool waits_for_path(uint64_t now_us) const;
  bool keys_tick(uint64_t now_us);
  void end_play(const char* reason);
  void tell_marks(std::vector<std::string>& marks);
  bool wants_sent_pcm() const;
  void give_taps(bool sent, const int16_t* pcm, int samples, int rate_hz);

  // housekeeping
  void second_tick(uint64_t now_us);
  void send_report(bool bye, uint64_t now_us);
  void send_rtcp(uint8_t* packet, size_t n);
  void event(EventType type, int64_t a = 0, int64_t b = 0, const char* text = "");

  // What each received packet touches, side by side and first: with a thousand calls the caches hold none of it, so it is
  // fetched ahead, line by line (fetch and fetch_peer).
  Stream* peer_ = nullptr;
  StreamCounters* const counted_;
  Wire& wire_;
  ThreadContext& context_;
  Address latched_;
  bool takes_raw_ = false, rtcp_mux_ = false, secured_ = false, may_receive_ = false;
  bool transcoding_ = false;  // the last audio that came in cannot be relayed
  bool facts_known_ = false;
  bool told_pause_ = false;  // the last audio that came announced a pause
  uint32_t silent_told_ = 0, policing_cost_us_ = 0;
  const char* told_codec_ = nullptr;  // of the counters, which are a line of memory of their own
  PayloadFacts facts_;  // of the payload type that came last
  uint64_t policing_us_ = 0, last_received_us_ = 0;
  std::unique_ptr<DecodePath> decode_;
  std::vector<RecordTrack> record_received_;
  ReceiveStats receive_;

  // What each sent packet touches.
  alignas(64) uint32_t ssrc_ = 0;
  uint32_t last_ts_ = 0;
  uint64_t last_ts_us_ = 0;
  uint16_t next_seq_ = 0;
  uint16_t relay_seq_off_ = 0, relay_last_seq_ = 0;
  bool sent_any_ = false, marker_next_ = true, clocked_ = false, relay_split_ = false;
  bool sends_ = false, may_send_ = false;
  Source source_ = Source::none;
  uint32_t relay_ssrc_ = 0, relay_ts_off_ = 0, relay_last_ts_ = 0;
  uint64_t relay_last_us_ = 0;
  uint32_t sent_packets_ = 0, sent_octets_ = 0;
  PayloadFacts send_;
  Address send_address_;
  std::unique_ptr<SrtpContext> srtp_tx_;
  std::vector<RecordTrack> record_sent_;
  std::vector<Tap> taps_;

  alignas(64) const uint32_t id_;
  const Policy policy_;
  const std::shared_ptr<StreamCounters> counters_;
  const std::string cname_;
  StreamConfig config_;
  std::vector<Stream*> sources_;  // streams whose peer this is
  bool relay_keys_ = true, closed_ = false;
  static constexpr size_t kStrangerShares = 8;
  uint64_t raw_us_[1 + kStrangerShares] = {};  // the peer's, then those of strangers

  // latching
  Address rtcp_address_, rtcp_seen_, former_;
  Candidate candidates_[4];
  unsigned next_candidate_ = 0;
  uint64_t described_us_ = 0, trusted_us_ = 0;

  // receiving
  uint8_t payload_index_[128];
  KeyReceiver keys_in_;
  uint32_t key_in_ts_ = 0;
  bool key_any_ = false, key_waits_ = false;
  std::unique_ptr<SrtpContext> srtp_rx_, srtp_rx_old_;
  uint64_t old_key_until_us_ = 0, failing_since_us_ = 0;
  bool srtp_told_ = false;
  uint64_t silent_since_us_ = 0;
  std::unique_ptr<Detector> detector_;
  std::unique_ptr<Resampler> to_detector_;
  uint64_t last_rtcp_us_ = 0, last_report_us_ = 0;
  bool detect_inband_ = false, detect_voice_ = false, detect_tones_ = false;
  uint64_t inband_key_us_ = 0;
  std::shared_ptr<ConferencePort> conference_;

  // keys passed on
  uint32_t event_in_ts_ = 0, event_out_ts_ = 0;
  bool event_any_ = false;
  // made here
  std::unique_ptr<Encoder> encoder_;
  CodecId encoder_codec_ = CodecId::other;
  EncoderOptions encoder_options_;
  std::unique_ptr<Resampler> to_encoder_;
  std::vector<int16_t> outgoing_;
  uint32_t made_ts_ = 0;
  size_t pause_samples_ = 0;  // at the end of outgoing_: the noise of a pause
  PauseReports pause_reports_;
  ComfortNoise pause_;  // of a relayed sender, for a peer that takes no comfort noise
  std::unique_ptr<Player> player_;
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<KeySender> keys_out_;
  uint32_t key_ts_ = 0;
  double key_phase_[2] = {};
  std::unique_ptr<Decoder> sent_decoder_;
  CodecId sent_codec_ = CodecId::other;

  // reports
  uint32_t reported_packets_ = 0;
  uint32_t peer_sr_ = 0, peer_sr_ssrc_ = 0;
  uint64_t peer_sr_us_ = 0, next_report_us_ = 0;

  Timer second_timer_, decode_timer_, clock_timer_;
  uint64_t decode_due_us_ = 0, clock_due_us_ = 0, clock_since_us_ = 0;
};

/** Random numbers for SSRCs and first sequence numbers, from the kernel. */
uint32_t random32();

}  // namespace media
