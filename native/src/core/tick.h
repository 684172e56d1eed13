// The tick of what plays, mixes and decodes: 20 ms, whatever the packet time of the stream is.
#pragma once
#include <cstdint>

namespace media {

constexpr uint64_t kTickUs = 20'000;
/** A tick that is later than this is counted, and restarts the clock from now. */
constexpr uint64_t kLostUs = 100'000;
/** The samples of a tick at 48 kHz, the highest rate. */
constexpr int kMostTick = 960;
inline constexpr int16_t kSilence[kMostTick] = {};

}  // namespace media
