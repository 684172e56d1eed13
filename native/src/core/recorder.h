// Recording: packets are copied into a ring on the packet thread; a thread of its own decodes, aligns and writes them.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../codec/codec.h"
#include "counters.h"
#include "events.h"
#include "queue.h"
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

/** One recording. Members named `packet_...` are called on the packet thread, `writer_...` on the writer's. */
class Recording {
 public:
  explicit Recording(RecordConfig config);

  /** Opens the file; an error is told by the end event. */
  void writer_open(uint64_t now_us);
  void packet_audio(int track, uint32_t ssrc, uint16_t seq, uint32_t ts, uint32_t clock_rate, CodecId codec,
                    const uint8_t* payload, size_t bytes, uint64_t now_us);
  void packet_pause(bool paused, uint64_t now_us);
  /** True when the key ends the recording. */
  bool packet_key(char digit, uint64_t now_us);
  void packet_end(RecordEnd reason, uint64_t now_us);

  /** Writes what is due; true when the recording has ended and `writer_finish` is to be called. */
  bool writer_advance(uint64_t now_us);
  void writer_finish(Event& out);

  const std::string& id() const { return config_.id; }
  uint64_t dropped() const { return dropped_; }

  /** Tracks: which legs and directions go to which channel. */
  void set_channel(int track, int channel) { tracks_[track].channel = channel; }
  static constexpr int kTracks = 3;  // received from left, received from right, sent to left

 private:
  struct Head {
    uint8_t kind, track, codec, digit;
    uint16_t seq;
    uint32_t ssrc, ts, clock_rate;
    uint64_t at_us;
  };
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
  void take(const std::vector<uint8_t>& record);
  void place_due(uint64_t now_us, bool all);
  void place(int track, const Packet& p, const uint8_t* payload, size_t bytes);
  void measure(Track& t, int64_t pos, const int16_t* pcm, int samples) const;
  void rebase(Track& t, const Packet& p);
  void steer(Track& t, const Packet& p, int64_t pos);
  void put(Track& t, int64_t pos, const int16_t* pcm, int samples);
  void flush(int64_t to);
  void end(RecordEnd reason, int64_t at);
  void trim();

  const RecordConfig config_;
  ByteRing ring_;
  Track tracks_[kTracks];
  WavFile file_;
  std::vector<int16_t> line_;  // ring of frames
  int64_t capacity_ = 0, flushed_ = 0;
  uint64_t start_us_ = 0, paused_us_ = 0, paused_since_us_ = 0;
  std::vector<uint8_t> scratch_;
  std::vector<int16_t> decoded_, converted_, out_;
  RecordEnd reason_ = RecordEnd::none;
  int64_t end_at_ = INT64_MAX;
  char key_ = 0;
  std::string detail_;
  bool heard_ = false, broken_ = false;
  std::atomic<uint8_t> lost_end_{0};
  Count dropped_;
};

/** The writer: one thread for all recordings of an engine. */
class Recorder {
 public:
  explicit Recorder(EventQueue& events);
  ~Recorder();

  void add(std::shared_ptr<Recording> recording);
  /** Something has ended; called from any thread. */
  void wake();
  /** Ends all recordings and the thread. */
  void stop();
  size_t active() const { return active_.load(std::memory_order_relaxed); }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  void run();
  EventQueue& events_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Recording>> fresh_;
  std::atomic<bool> stopping_{false};
  std::atomic<size_t> active_{0};
  std::atomic<uint64_t> dropped_{0};
  int wake_fd_;
  std::thread thread_;
};

}  // namespace media
