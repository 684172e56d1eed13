// Audio that the engine sends by its own clock: pieces to play, and the live feed from JavaScript.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "resample.h"

namespace media {

struct Piece {
  enum class Kind : uint8_t { pcm, tone, silence } kind = Kind::silence;
  std::shared_ptr<const std::vector<int16_t>> samples;
  int rate_hz = 8000;
  double hz[4] = {};
  int tones = 0;
  double level_dbm0 = -13;
  uint64_t on_ms = 0, off_ms = 0, total_ms = 0;  // total_ms 0: endless
};

class Player {
 public:
  Player(std::string id, std::vector<Piece> pieces, uint32_t loops)
      : id_(std::move(id)), pieces_(std::move(pieces)), loops_(loops) {}

  const std::string& id() const { return id_; }
  /** Writes up to `samples` samples at this rate. Returns the number written, which is lower when the play ends. */
  int pull(int16_t* out, int samples, int rate_hz);
  uint64_t played_ms() const { return played_us_ / 1000; }

 private:
  bool next_piece();
  int pull_pcm(const Piece& p, int16_t* out, int samples, int rate_hz);
  int pull_tone(const Piece& p, int16_t* out, int samples, int rate_hz);

  const std::string id_;
  const std::vector<Piece> pieces_;
  const uint32_t loops_;
  uint32_t loop_ = 0;
  size_t piece_ = 0;
  uint64_t at_ = 0;  // position in the piece: PCM in samples of its own rate, tones and silence of the output's
  bool started_ = false, flushed_ = false, advanced_ = false;
  double phase_[4] = {};
  std::unique_ptr<Resampler> resampler_;
  std::vector<int16_t> fifo_;
  uint64_t played_us_ = 0;
};

/** Plays PCM while more of it arrives. A full feed drops what is added: whoever fills it may be faster than it plays. */
class Feed {
 public:
  /** The sound of the longest file, after which one more is taken, and the pieces and marks of ten minutes. */
  static constexpr size_t kMaxSeconds = 2400, kMaxChunks = 60'000;

  bool empty() const { return held_ == 0 && fifo_.empty(); }
  /** `yields`: the peer's voice may stop the feed while this plays. */
  void add(std::shared_ptr<const std::vector<int16_t>> samples, int rate_hz, bool yields);
  void mark(std::string name);
  /** Writes `samples` samples; silence replaces missing PCM. Appends to `passed` the marks that playing has reached. */
  void pull(int16_t* out, int samples, int rate_hz, std::vector<std::string>& passed);
  void clear(std::vector<std::string>& passed);
  /** Moves to `passed` the marks that have no audio before them. */
  void take_due_marks(std::vector<std::string>& passed);
  /** Reports whether the audio that plays next yields to the peer's voice. */
  bool yields() const;
  /** Returns the last mark that playing has reached, and the length of what has played since. */
  const std::string& last_mark() const { return last_mark_; }
  uint64_t since_mark_ms() const { return since_mark_us_ / 1000; }

 private:
  struct Chunk {
    std::shared_ptr<const std::vector<int16_t>> samples;
    int rate_hz;
    size_t at;
    std::string mark;
    bool yields;
  };
  size_t read(int16_t* in, size_t block, std::vector<std::string>& passed);

  std::deque<Chunk> chunks_;
  size_t held_ = 0;
  std::unique_ptr<Resampler> resampler_;
  std::vector<int16_t> fifo_;
  bool fifo_yields_ = false;
  std::string last_mark_;
  uint64_t since_mark_us_ = 0;
};

}  // namespace media
