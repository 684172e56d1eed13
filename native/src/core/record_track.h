// The recordings that a stream writes to.
#pragma once
#include <memory>
#include <vector>

#include "recording.h"

namespace media {

/** A recording, and which of its tracks the stream writes. Aligned so that it never lies in two lines of memory. */
struct alignas(32) RecordTrack {
  std::shared_ptr<Recording> recording;
  int track;
};

inline void erase_recording(std::vector<RecordTrack>& tracks, const Recording* recording) {
  std::erase_if(tracks, [&](const RecordTrack& t) { return t.recording.get() == recording; });
}

}  // namespace media
