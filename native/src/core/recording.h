// One recording. The packet thread queues copies of packets; the recorder's thread decodes, aligns and writes them.
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

/** The buffers of the recorder's thread. All recordings share them in turn, so that they stay in the caches. Between
 * two recordings the lines are all zero. */
struct RecordDesk {
  std::vector<int16_t> decoded, converted;
  std::vector<int16_t> line[2];  // one per channel; begins at the end of the file
  std::vector<int16_t> interleaved;

  RecordDesk() : decoded(2 * kMaxFrameSamples), converted(2 * kMaxFrameSamples) {}
};

/** The packet thread calls members named `packet_...`, the recorder's thread those named `writer_...`. */
class Recording {
 public:
  Recording(RecordConfig config, std::shared_ptr<ChunkPool> pool);

  /** Opens the file. An error ends the recording, and its end event reports the error. */
  void writer_open(uint64_t now_us);
  void packet_audio(int track, uint32_t ssrc, uint16_t seq, uint32_t ts, uint32_t clock_rate, CodecId codec,
                    const uint8_t* payload, size_t bytes, uint64_t now_us);
  /** Pauses or resumes. The file has silence for a silent pause, and leaves out the time of any other. */
  void packet_pause(bool paused, bool silent, uint64_t now_us);
  /** Takes a key. True when the key ends the recording. */
  bool packet_key(char digit, uint64_t now_us);
  void packet_end(RecordEnd reason, uint64_t now_us);

  /** Writes the audio that is due. True when the recording has ended: call `writer_finish` next. */
  bool writer_advance(RecordDesk& desk, uint64_t now_us);
  void writer_finish(Event& out);
  /** Returns when `writer_advance` has work to do, unless the recording ends earlier. */
  uint64_t writer_due_us(uint64_t now_us) const;

  // Prefetch the memory of the next packet in two steps.
  void fetch() const { queue_.fetch(); }
  void fetch_room() const { queue_.fetch_bytes(sizeof(Head) + 160); }
  const std::string& id() const { return config_.id; }
  uint64_t dropped() const { return dropped_; }
  /** Reports whether the recording is to end. The recorder's thread then handles it at once. */
  bool ending() const { return ending_.load(std::memory_order_relaxed); }

  /** The channel of a track that is not written. */
  static constexpr int kUnheard = -1;
  /** Sets the channel of a track, which is one direction of one leg. */
  void set_channel(int track, int channel) { tracks_[track].channel = channel; }
  static constexpr int kTracks = 3;  // received from left, received from right, sent to left

 private:
  /** 28 bytes: with its prefix and 20 ms of G.711 a packet fills exactly three cache lines. */
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
    int64_t base = 0;  // the position of base_ts
    int64_t next = 0;  // the end of the audio so far
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
  void pause(bool silent, uint64_t at_us);
  void resume(uint64_t at_us);
  uint64_t present(uint64_t at_us) const;
  void trim();

  const RecordConfig config_;
  ChunkQueue queue_;
  std::atomic<uint8_t> lost_end_{0};
  std::atomic<bool> ending_{false};
  Count dropped_;
  alignas(64) Track tracks_[kTracks];
  WavFile file_;
  std::vector<int16_t> kept_[2];  // one per channel; audio that is not in the file yet
  size_t used_[2] = {0, 0};       // the number of this recording's samples in the desk's lines
  int64_t capacity_ = 0, flushed_ = 0;
  int64_t frame_bytes_ = 2, block_bytes_ = 4096;
  uint64_t start_us_ = 0, paused_us_ = 0, paused_since_us_ = 0;
  bool silent_ = false;  // the file has silence for the current pause
  std::vector<RecordPause> pauses_;
  RecordEnd reason_ = RecordEnd::none;
  int64_t end_at_ = INT64_MAX;
  char key_ = 0;
  std::string detail_;
  bool heard_ = false, broken_ = false;
};

}  // namespace media
