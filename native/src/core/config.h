// The negotiated state of a stream, as the data plane stores it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "../codec/codec.h"
#include "address.h"
#include "srtp.h"

namespace media {

/** Returns one string per distinct name. It is never freed, so packet threads can compare names as pointers. */
const char* intern(const std::string& name);

struct Policy {
  bool strict = false;
  std::vector<Network> sources;
  Address signalled_from;
  uint8_t family = 0;  // 4 or 6 selects the address to bind; 0: the first one
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
  /** Reports whether the relay can send packets of this format as the other one without decoding. A table converts PCMU
   * to PCMA and back. */
  bool passes_as(const PayloadFacts& o) const {
    return same_format(o) || (is_g711() && o.is_g711() && clock_rate == o.clock_rate);
  }
};

struct StreamConfig {
  Address remote_rtp, remote_rtcp;  // unknown before the peer's SDP
  bool reachable = true;            // false while the SDP names no address: then nothing is sent
  bool rtcp_mux = false;
  bool may_send = false, may_receive = false;
  std::vector<PayloadFacts> receive;
  bool sends = false;
  PayloadFacts send;
  int ptime_ms = 20;
  int max_ptime_ms = 0;  // the longest packet that the peer takes; 0: any
  int comfort_noise_pt = -1;
  bool fec = false, dtx = false;
  bool silence_frames = false;  // the peer reads silence frames of G.729 Annex B
  int bitrate = 0;
  bool fills_idle = false;  // send silence while nothing else is sent
  bool sends_events = false;
  PayloadFacts event;
  bool secured = false;
  SrtpSuite suite = SrtpSuite::aes128_sha1_80;
  std::vector<uint8_t> receive_key, send_key;

  /** Reports whether an encoder for the other configuration also serves this one. */
  bool encodes_as(const StreamConfig& o) const {
    return sends && o.sends && send.same_format(o.send) && ptime_ms == o.ptime_ms && bitrate == o.bitrate &&
           fec == o.fec && dtx == o.dtx;
  }
};

}  // namespace media
