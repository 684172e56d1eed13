// The sources that a stream sends by a clock of its own: prompts, feeds, keys, a conference, the noise of a pause.
//
// Thread: the packet thread of its stream; a conference's port crosses to the thread that mixes.
// Memory: cold. A relayed packet reads one flag of these, and that lies in the sender's lines.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comfort_noise.h"
#include "player.h"
#include "telephone_event.h"
#include "timer.h"

namespace media {

class ConferencePort;
class Stream;

class Sources {
 public:
  explicit Sources(Stream& stream);

  void play(std::unique_ptr<Player> player, uint64_t now_us);
  /** Stops the play of this id, or any when it is empty. */
  void stop_play(const std::string& id);
  void feed(std::shared_ptr<const std::vector<int16_t>> samples, int rate_hz, uint64_t now_us);
  void feed_mark(std::string name);
  void feed_clear();
  void send_keys(KeySender::Request request, uint64_t now_us);
  bool sends_keys() const { return keys_ && keys_->busy(); }
  void join(std::shared_ptr<ConferencePort> port);
  /** False when there was no conference to leave. */
  bool leave();
  ConferencePort* conference() const { return conference_.get(); }
  /** Ends prompts, feeds and keys, and tells so. */
  void close();
  void stop_clock() { timer_.cancel(); }

  /** A relayed sender pauses and the peer takes no comfort noise packets: sends it the noise, until the pause ends. */
  void sound_pause(const uint8_t* payload, size_t n, uint64_t now_us);
  /** Ends the noise of a pause because the sender is heard again. */
  void interrupt_pause() {
    if (pause_.on()) end_pause();
  }
  /** Ends the noise of a pause, and the clock when nothing else needs it. */
  void end_pause();

  /** Starts the clock, for sources to send by. It stops by itself when nothing is to be sent. */
  void start_clock(uint64_t now_us);

 private:
  bool any() const;
  bool waits_for_path(uint64_t now_us) const;
  void tick(uint64_t now_us);
  void send_audio(uint64_t now_us);
  void send_conference(int16_t* pcm, uint64_t now_us);
  bool keys_tick(uint64_t now_us);
  void send_tones(int event, uint64_t now_us);
  void end_play(const char* reason);
  void tell_marks(const std::vector<std::string>& marks);
  void tell_keys(bool sent);

  Stream& stream_;
  std::unique_ptr<Player> player_;
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<KeySender> keys_;
  double tone_phase_[2] = {};
  std::shared_ptr<ConferencePort> conference_;
  ComfortNoise pause_;
  Timer timer_;
  uint64_t due_us_ = 0, since_us_ = 0;
};

}  // namespace media
