// Fuzzes the parsing of RTCP.
#include "../src/core/rtcp.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  media::PeerReport report;
  media::parse_rtcp(data, size, 9, report);
  if (report.block && !report.sender_info && report.cumulative_lost > 0x7fffff) __builtin_trap();
  return 0;
}
