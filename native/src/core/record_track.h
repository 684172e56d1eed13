// A stream's part in a recording.
#pragma once
#include <memory>
#include <vector>

#include "recording.h"

namespace media {

/** A recording, and the track of it that the stream writes. The alignment keeps it within one cache line. */
struct alignas(32) RecordTrack {
  std::shared_ptr<Recording> recording;
  int track;
};

inline void erase_recording(std::vector<RecordTrack>& tracks, const Recording* recording) {
  std::erase_if(tracks, [&](const RecordTrack& t) { return t.recording.get() == recording; });
}

}  // namespace media
