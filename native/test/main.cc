// Runs all tests of the core; the last line is TAP's plan.
#include "check.h"

void rtp_tests();
void srtp_tests();
void stream_tests();
void decode_tests();
void recording_tests();
void engine_tests();

int main() {
  rtp_tests();
  srtp_tests();
  stream_tests();
  decode_tests();
  recording_tests();
  engine_tests();
  std::printf("1..%d\n", check::count);
  return check::failed ? 1 : 0;
}
