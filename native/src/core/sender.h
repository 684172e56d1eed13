// The sending half of a stream. It keeps one SSRC, one numbering and one clock across all sources.
//
// Thread: the packet thread of its stream.
// Memory: each sent packet touches SenderLines, three cache lines that `fetch` prefetches. A relayed packet touches
// nothing else of the sending stream. Only keys, taps and our own sources touch the rest.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "config.h"
#include "counters.h"
#include "lines.h"
#include "record_track.h"
#include "rtp.h"
#include "srtp.h"
#include "taps.h"
#include "telephone_event.h"
#include "wire.h"

namespace media {

class Stream;

/** Returns a random number from the kernel, for SSRCs and first sequence numbers. */
uint32_t random32();

/** What the stream sends: nothing yet, another stream's packets, audio that we encode, or keys. */
enum class Source : uint8_t { none, relay, made, keys };

struct alignas(kLine) SenderLines {
  SenderLines(StreamCounters& counted, Wire& wire, ThreadContext& context)
      : counted_(counted), wire_(wire), context_(context) {}

  uint32_t ssrc_ = 0;
  uint32_t last_ts_ = 0;
  uint64_t last_ts_us_ = 0;
  uint16_t next_seq_ = 0;
  uint16_t relay_seq_off_ = 0, relay_last_seq_ = 0;
  bool sent_any_ = false, marker_next_ = true, clocked_ = false, relay_split_ = false;
  bool sends_ = false, may_send_ = false;
  Source source_ = Source::none;
  bool secured_ = false;
  uint16_t most_bytes_ = 0;  // the longest payload that the peer takes; 0: any
  uint32_t relay_ssrc_ = 0, relay_ts_off_ = 0, relay_last_ts_ = 0;
  uint64_t relay_last_us_ = 0;
  uint32_t sent_packets_ = 0, sent_octets_ = 0;
  PayloadFacts format_;
  Address address_;
  std::unique_ptr<SrtpContext> srtp_;
  std::vector<RecordTrack> recordings_;
  Taps taps_;
  StreamCounters& counted_;
  Wire& wire_;
  ThreadContext& context_;
};
static_assert(sizeof(SenderLines) == 3 * kLine);

class Sender : private SenderLines {
 public:
  Sender(Stream& stream, StreamCounters& counted, Wire& wire, ThreadContext& context, uint64_t now_us);

  void describe(const StreamConfig& before, const StreamConfig& next);
  void send_to(const Address& address) { address_ = address; }
  const Address& address() const { return address_; }
  const PayloadFacts& format() const { return format_; }
  bool sends() const { return sends_; }
  /** Reports whether the negotiated direction allows sending and the address is known. */
  bool reaches_peer() const { return sends_ && may_send_ && address_.known(); }

  // Relaying
  /** Reports whether the peer takes packets with this much audio in its own format. */
  bool takes(size_t payload) const { return most_bytes_ == 0 || payload <= most_bytes_; }
  /** Reports whether the stream can relay. False while one of our own sources replaces the relay. */
  bool may_take_relay() const { return reaches_peer() && !clocked_; }
  /** Relays a packet of the other stream and rewrites it in place. */
  void relay(uint8_t* packet, const RtpView& v, const PayloadFacts& facts, uint64_t now_us);
  /** Leaves out a packet of the relayed source. The numbers of later packets close the gap. */
  void skip_relay(const RtpView& v);
  /** Relays a key between different clocks or between transcoded streams. */
  void relay_event(const RtpView& v, const TelephoneEvent& in, const PayloadFacts& facts, uint64_t now_us);
  /** Makes the next relayed packet continue our numbering instead of its source's. */
  void split_relay() { relay_split_ = true; }

  // Sources of our own
  bool clocked() const { return clocked_; }
  void set_clocked(bool clocked) {
    clocked_ = clocked;
    source_ = Source::none;
  }
  bool makes_audio() const { return source_ == Source::made; }
  void begin_made(uint64_t now_us);
  void end_made() {
    if (source_ == Source::made) source_ = Source::none;
  }
  /** Sends encoded audio. `packet` has room for the header before the payload and for SRTP after it. */
  void send_made(uint8_t* packet, size_t payload, uint64_t now_us);
  /** Sends encoded silence of an idle stream. Recordings and taps do not get it: their clocks fill the time. */
  void send_silence(uint8_t* packet, size_t payload, uint64_t now_us);
  /** Sends a comfort noise packet (RFC 3389). `level` is in -dBov. */
  void send_noise(uint8_t level, uint64_t now_us);
  /** Advances the clock of our own audio. */
  void advance_made(uint32_t step) { made_ts_ += step; }
  void mark_next() { marker_next_ = true; }
  void send_key(const KeySender::Packet& key, uint64_t now_us);

  // Taps and recordings of sent audio
  Taps& taps() { return taps_; }
  const Taps& taps() const { return taps_; }
  void record(RecordTrack track) { recordings_.push_back(std::move(track)); }
  void unrecord(const Recording* recording) { erase_recording(recordings_, recording); }
  void end_recordings() { recordings_.clear(); }

  // Reports
  uint32_t ssrc() const { return ssrc_; }
  bool sent_any() const { return sent_any_; }
  uint32_t sent_packets() const { return sent_packets_; }
  uint32_t sent_octets() const { return sent_octets_; }
  /** Returns the RTP clock at `now_us`, extrapolated from the last packet. */
  uint32_t clock_now(uint64_t now_us) const;
  /** Protects an RTCP packet. Returns its length, or 0 when it cannot be sent. */
  size_t protect_rtcp(uint8_t* packet, size_t n) {
    if (!secured_) return n;
    return srtp_ ? srtp_->protect_rtcp(packet, n) : 0;
  }
  void sending_failed() { ++counted_.send_failed; }

  void fetch() const { fetch_lines(static_cast<const SenderLines*>(this), sizeof(SenderLines) / kLine); }
  /** Prefetches what the lines of `fetch` point to. Call it once they have arrived. */
  void fetch_outlet() const {
    __builtin_prefetch(&counted_.packets_sent, 1);
    __builtin_prefetch(&wire_, 1);
  }

 private:
  uint32_t next_ts(uint64_t now_us) const;
  void splice(Source source, uint64_t now_us);
  inline bool continues_relay(const RtpView& v, const PayloadFacts& facts, uint64_t now_us) const;
  void begin_relay(const RtpView& v, uint64_t now_us);
  void emit(uint8_t* packet, size_t payload, uint8_t pt, bool marker, uint16_t seq, uint32_t ts, uint64_t now_us);
  inline void address_packet(uint8_t* packet, size_t payload, uint8_t pt, bool marker, uint16_t seq, uint32_t ts,
                             uint64_t now_us);
  inline void hand_over(uint8_t* packet, size_t payload);
  inline void copy_audio(const uint8_t* payload, size_t bytes, uint16_t seq, uint32_t ts, uint64_t now_us);
  void give_taps(const uint8_t* payload, size_t bytes, uint32_t ts, uint64_t now_us);

  Stream& stream_;
  uint32_t made_ts_ = 0;
  uint8_t event_in_ = 0;
  uint32_t event_in_ts_ = 0, event_out_ts_ = 0, key_ts_ = 0;
  bool event_any_ = false;
  std::unique_ptr<Decoder> tap_decoder_;
  CodecId tap_codec_ = CodecId::other;
  bool tapped_ = false;
  uint32_t tap_ts_ = 0;  // the end of what the taps have
};

}  // namespace media
