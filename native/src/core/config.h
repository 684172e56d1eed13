// What offer and answer have settled about a stream, in the data plane's terms.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "../codec/codec.h"
#include "address.h"
#include "srtp.h"

namespace media {

/** Returns one string for each distinct name, which lives for ever: packet threads compare names as pointers. */
const char* intern(const std::string& name);

struct Policy {
  bool strict = false;
  std::vector<Network> sources;
  Address signalled_from;
  uint8_t family = 0;  // 4 or 6, when the stream may be bound to an address of either family
};

enum class PayloadKind : uint8_t { unknown, audio, telephone_event, comfort_noise };

struct PayloadFacts {
  PayloadKind kind = PayloadKind::unknown;
  uint8_t payload_type = 0;
  CodecId codec = CodecId::other;
  const char* name = "";  // interned "NAME"
  uint32_t clock_rate = 8000;

  bool same_format(const PayloadFacts& o) const { return name == o.name && clock_rate == o.clock_rate; }
  bool is_g711() const { return codec == CodecId::pcmu || codec == CodecId::pcma; }
  /** Whether packets of this format become packets of the other without being decoded. A table converts PCMU and PCMA.
   * */
  bool passes_as(const PayloadFacts& o) const {
    return same_format(o) || (is_g711() && o.is_g711() && clock_rate == o.clock_rate);
  }
};

struct StreamConfig {
  Address remote_rtp, remote_rtcp;  // unknown until the peer's SDP is there
  bool rtcp_mux = false;
  bool may_send = false, may_receive = false;
  std::vector<PayloadFacts> receive;
  bool sends = false;
  PayloadFacts send;
  int ptime_ms = 20;
  int comfort_noise_pt = -1;
  bool fec = false, dtx = false;
  bool silence_frames = false;  // the peer reads silence frames of G.729 Annex B
  int bitrate = 0;
  bool sends_events = false;
  PayloadFacts event;
  bool secured = false;
  SrtpSuite suite = SrtpSuite::aes128_sha1_80;
  std::vector<uint8_t> receive_key, send_key;

  /** Whether an encoder for the other configuration serves this one too. */
  bool encodes_as(const StreamConfig& o) const {
    return sends && o.sends && send.same_format(o.send) && ptime_ms == o.ptime_ms && bitrate == o.bitrate &&
           fec == o.fec && dtx == o.dtx;
  }
};

}  // namespace media
