// One recording: packets are copied away on the packet thread; the writer's thread decodes, aligns and writes them.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../codec/codec.h"
#include "chunks.h"
#include "counters.h"
#include "events.h"
#include "resample.h"
#include "wav.h"

namespace media {

struct RecordConfig {
  std::string id, file, finish_keys;
  int channels = 1, rate_hz = 8000;
  uint64_t max_ms = 0, silence_ms = 0;
  bool trim = false;
};

enum class RecordEnd : uint8_t { none, stopped, silence, key, max_length, leg_closed, disk_full, failed };

/** What a writer works with, one after another for all its recordings, so that it stays in the caches. Between two
 * recordings the lines are all zero. */
struct RecordDesk {
  std::vector<int16_t> decoded, converted;
  std::vector<int16_t> line[2];  // of each channel, from the end of the file on
  std::vector<int16_t> interleaved;

  RecordDesk() : decoded(2 * kMaxFrameSamples), converted(2 * kMaxFrameSamples) {}
};

/** Members named `packet_...` are called on the packet thread, `writer_...` on the writer's. */
class Recording {
 public:
  Recording(RecordConfig config, std::shared_ptr<ChunkPool> pool);

  /** Opens the file; an error is told by the end event. */
  void writer_open(uint64_t now_us);
  void packet_audio(int track, uint32_t ssrc, uint16_t seq, uint32_t ts, uint32_t clock_rate, CodecId codec,
                    const uint8_t* payload, size_t bytes, uint64_t now_us);
  void packet_pause(bool paused, uint64_t now_us);
  /** True when the key ends the recording. */
  bool packet_key(char digit, uint64_t now_us);
  void packet_end(RecordEnd reason, uint64_t now_us);

  /** Writes what is due; true when the recording has ended and `writer_finish` is to be called. */
  bool writer_advance(RecordDesk& desk, uint64_t now_us);
  void writer_finish(Event& out);
  /** When `writer_advance` has something to do, unless the recording ends before. */
  uint64_t writer_due_us(uint64_t now_us) const;

  // The memory that the next packet will want, in two steps.
  void fetch() const { queue_.fetch(); }
  void fetch_room() const { queue_.fetch_bytes(sizeof(Head) + 160); }
  const std::string& id() const { return config_.id; }
  uint64_t dropped() const { return dropped_; }
  /** Its end was said, so that the writer need not wait for its turn. */
  bool ending() const { return ending_.load(std::memory_order_relaxed); }

  /** Tracks: which legs and directions go to which channel. */
  void set_channel(int track, int channel) { tracks_[track].channel = channel; }
  static constexpr int kTracks = 3;  // received from left, received from right, sent to left

 private:
  /** Of 28 bytes, so that with its prefix and 20 ms of G.711 a packet fills three lines of memory. */
  struct [[gnu::packed, gnu::aligned(4)]] Head {
    uint8_t kind, track, codec, digit;
    uint16_t seq, unused;
    uint32_t ssrc, ts, clock_rate;
    uint64_t at_us;
  };
  static_assert(sizeof(Head) == 28);
  struct Packet {
    int64_t order;
    uint32_t ts, clock_rate;
    CodecId codec;
    uint64_t at_us;
  };
  struct Pending {
    Packet packet;
    std::vector<uint8_t> payload;
  };
  struct Track {
    int channel = 0;
    bool any = false, based = false;
    uint32_t ssrc = 0;
    int64_t last_order = 0;
    std::vector<Pending> pending;
    CodecId codec = CodecId::other;
    uint32_t clock_rate = 0;
    std::unique_ptr<Decoder> decoder;
    std::unique_ptr<Resampler> resampler;
    uint32_t base_ts = 0;
    int64_t base = 0;  // position of base_ts
    int64_t next = 0;  // where the audio so far ends
    int64_t done_order = 0;
    int64_t least_late = INT64_MAX;
    uint64_t window_us = 0, last_us = 0;
    int64_t last_voice = 0;
  };

  int64_t position(uint64_t at_us) const;
  int64_t horizon(uint64_t now_us) const;
  int64_t longest() const;
  int64_t whole_blocks(int64_t position) const;
  void take_out(RecordDesk& desk);
  void put_away(RecordDesk& desk);
  void advance(RecordDesk& desk, uint64_t now_us);
  void take(RecordDesk& desk, const uint8_t* record, size_t size);
  void place_due(RecordDesk& desk, uint64_t now_us, bool all);
  void place(RecordDesk& desk, int track, const Packet& p, const uint8_t* payload, size_t bytes);
  void measure(Track& t, int64_t pos, const int16_t* pcm, int samples) const;
  void rebase(Track& t, const Packet& p);
  void steer(Track& t, const Packet& p, int64_t pos);
  void put(RecordDesk& desk, Track& t, int64_t pos, const int16_t* pcm, int samples);
  void flush(RecordDesk& desk, int64_t to);
  void end(RecordEnd reason, int64_t at);
  void trim();

  const RecordConfig config_;
  ChunkQueue queue_;
  std::atomic<uint8_t> lost_end_{0};
  std::atomic<bool> ending_{false};
  Count dropped_;
  alignas(64) Track tracks_[kTracks];
  WavFile file_;
  std::vector<int16_t> kept_[2];  // of each channel, what is not in the file yet
  size_t used_[2] = {0, 0};       // samples of the desk's lines that are of this recording
  int64_t capacity_ = 0, flushed_ = 0;
  int64_t frame_bytes_ = 2, block_bytes_ = 4096;
  uint64_t start_us_ = 0, paused_us_ = 0, paused_since_us_ = 0;
  RecordEnd reason_ = RecordEnd::none;
  int64_t end_at_ = INT64_MAX;
  char key_ = 0;
  std::string detail_;
  bool heard_ = false, broken_ = false;
};

}  // namespace media
