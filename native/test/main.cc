// Runs all tests of the core. The last line is the TAP plan.
#include <cstring>

#include "check.h"

void rtp_tests();
void srtp_tests();
void stream_tests();
void latching_tests();
void secured_stream_tests();
void decode_tests();
void crossing_tests();
void pause_tests();
void idle_tests();
void speech_watch_tests();
void conference_tests();
void g711_tests();
void recording_tests();
void engine_tests();
void datagram_tests();
void packet_ring_tests();
void chunks_tests();
void uring_tests();
void realtime_tests();

#ifdef THREADED_ONLY
// The tests that start threads, for ThreadSanitizer.
static void all_tests() {
  chunks_tests();
  engine_tests();
  packet_ring_tests();
}
#else
static void all_tests() {
  rtp_tests();
  srtp_tests();
  stream_tests();
  latching_tests();
  datagram_tests();
  secured_stream_tests();
  g711_tests();
  decode_tests();
  pause_tests();
  idle_tests();
  speech_watch_tests();
  conference_tests();
  crossing_tests();
  chunks_tests();
  uring_tests();
  recording_tests();
  realtime_tests();
  engine_tests();
  packet_ring_tests();
}
#endif

// The argument `packet-ring` runs only the tests of the packet ring.
int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "packet-ring") == 0)
    packet_ring_tests();
  else
    all_tests();
  std::printf("1..%d\n", check::count);
  return check::failed ? 1 : 0;
}
