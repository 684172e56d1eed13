// The receiving half of a stream: decides which packets are the peer's, counts them and forwards them.
//
// Thread: the packet thread of its stream.
// Memory: each received packet touches ReceiverLines, five cache lines that `fetch` prefetches. Only rare packets, SRTP
// and commands touch the rest.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "config.h"
#include "counters.h"
#include "decode_path.h"
#include "lines.h"
#include "newcomers.h"
#include "raw_gate.h"
#include "received_keys.h"
#include "record_track.h"
#include "rtp.h"
#include "srtp_receiver.h"
#include "wire.h"

namespace media {

class Stream;

struct alignas(kLine) ReceiverLines {
  ReceiverLines(Stream& stream, StreamCounters& counted, ThreadContext& context)
      : counted_(counted), stream_(stream), context_(context) {}

  Stream* peer_ = nullptr;
  StreamCounters& counted_;
  Stream& stream_;
  ThreadContext& context_;
  Address latched_;
  bool takes_raw_ = false, rtcp_mux_ = false, secured_ = false, may_receive_ = false;
  bool transcoding_ = false;  // the last received audio cannot be relayed
  bool facts_known_ = false;
  bool told_pause_ = false;  // the last received audio announced a pause
  uint32_t silent_told_ = 0, policing_cost_us_ = 0;
  const char* told_codec_ = nullptr;  // a copy from the counters, which are in another cache line
  PayloadFacts facts_;                // of the last received payload type
  uint64_t policing_us_ = 0, last_received_us_ = 0;
  std::unique_ptr<DecodePath> decode_;
  std::vector<RecordTrack> recordings_;
  ReceiveStats stats_;
};
static_assert(sizeof(ReceiverLines) == 5 * kLine);

class Receiver : private ReceiverLines {
 public:
  Receiver(Stream& stream, StreamCounters& counted, ThreadContext& context, uint64_t now_us);

  void describe(const StreamConfig& before, const StreamConfig& next, uint64_t now_us);
  void on_rtp(uint8_t* packet, size_t n, const Address& from, uint64_t now_us);
  SrtpResult unprotect_rtcp(uint8_t* packet, size_t& n) { return srtp_.unprotect_rtcp(packet, n); }

  /** Returns the stream that sends what this one receives, or null. */
  Stream* peer() const { return peer_; }
  void send_to(Stream* peer) {
    peer_ = peer;
    transcoding_ = false;
  }
  /** Sets whether STUN and DTLS packets (RFC 7983) become events instead of counting as malformed RTP. */
  void take_raw(bool enabled) { takes_raw_ = enabled; }
  bool takes_raw() const { return takes_raw_; }
  /** Sets the addresses that ICE checks have proved besides the peer's. The peer may send from any of them. */
  void prove(std::vector<Address> proved) { proved_ = std::move(proved); }
  bool transcodes() const { return transcoding_; }
  const Address& latched() const { return latched_; }
  /** Reports whether nothing has come for a second. */
  bool is_silent(uint64_t now_us) const;
  ReceiveStats& stats() { return stats_; }
  ReceivedKeys& keys() { return keys_; }

  DecodePath* decode_path() const { return decode_.get(); }
  void decode_by(std::unique_ptr<DecodePath> path) { decode_ = std::move(path); }

  void record(RecordTrack track) { recordings_.push_back(std::move(track)); }
  void unrecord(const Recording* recording) { erase_recording(recordings_, recording); }
  void record_key(char digit, uint64_t now_us);
  /** Ends the recordings whose `left` stream this is. */
  void end_recordings(uint64_t now_us);

  void second_tick(uint64_t now_us);

  // Prefetch the memory of the next packet in steps. Each step reads what the previous one has fetched.
  void fetch() const { fetch_lines(static_cast<const ReceiverLines*>(this), sizeof(ReceiverLines) / kLine); }
  void fetch_counters() const {
    __builtin_prefetch(&counted_, 1);
    if (!recordings_.empty()) __builtin_prefetch(recordings_.data());
  }
  void fetch_recording() const {
    if (!recordings_.empty()) recordings_[0].recording->fetch();
  }
  void fetch_recording_room() const {
    if (!recordings_.empty()) recordings_[0].recording->fetch_room();
  }

 private:
  // senders
  inline const PayloadFacts* accept(uint8_t* packet, size_t n, const Address& from, RtpView& v, uint64_t now_us);
  bool decrypt(uint8_t* packet, size_t& n, const Address& from, uint64_t now_us);
  bool admit(const Address& from, const RtpView& v, uint64_t now_us);
  bool trusted(const Address& from) const;
  bool proved(const Address& from) const;
  bool outranks(const Address& from, uint64_t now_us) const;
  bool has_moved(const uint8_t* packet, size_t n, const Address& from, uint64_t now_us);
  bool continues(const RtpView& v) const;
  bool resumes(const Address& from, uint64_t now_us) const;
  void latch(const Address& from);
  bool policed(uint64_t now_us);
  void on_raw(const uint8_t* packet, size_t n, const Address& from, uint64_t now_us);

  // payload types and counters
  const PayloadFacts* payload_facts(uint8_t pt);
  inline bool count(const RtpView& v, const PayloadFacts& facts, uint64_t now_us);
  void tell_silence(uint64_t now_us);
  uint64_t gap_us(uint64_t now_us) const;
  void end_gap(uint64_t now_us);

  // forwarding
  void on_audio(uint8_t* packet, const RtpView& v, const PayloadFacts& facts, uint64_t now_us);
  bool fits(const RtpView& v, uint64_t now_us);
  void pass(uint8_t* packet, const RtpView& v, const PayloadFacts& facts, uint64_t now_us);

  uint8_t payload_index_[128];  // by payload type: the index in the configuration
  SrtpReceiver srtp_;
  ReceivedKeys keys_;
  RawGate raw_gate_;
  Newcomers newcomers_;
  std::vector<Address> proved_;
  Address former_;  // the peer's address before the last SDP
  uint64_t described_us_, resumed_us_, silent_since_us_;
  uint64_t timed_packets_ = 0;  // received packets up to the last second
};

}  // namespace media
