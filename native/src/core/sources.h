// The sources that a stream sends by its own clock: prompts, feeds, keys, a conference, the noise of a pause, and silence
// when there is nothing else to send.
//
// Thread: the packet thread of its stream. Only a conference's port is shared with the mixing thread.
// Memory: cold. A relayed packet reads only the flag `clocked_`, which is in the sender's cache lines.
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
  /** Stops the play of this id. An empty id stops any play. */
  void stop_play(const std::string& id);
  void feed(std::shared_ptr<const std::vector<int16_t>> samples, int rate_hz, bool yields, uint64_t now_us);
  /** Sends audio before all else: what plays waits meanwhile, and then goes on. */
  void announce(std::shared_ptr<const std::vector<int16_t>> samples, int rate_hz, uint64_t now_us);
  void feed_mark(std::string name);
  void feed_clear();
  /** The peer's voice was heard: clears the feed if what plays yields to it, and reports that before its marks. */
  void yield_to_voice();
  void send_keys(KeySender::Request request, uint64_t now_us);
  bool sends_keys() const { return keys_ && keys_->busy(); }
  void join(std::shared_ptr<ConferencePort> port);
  /** Leaves the conference. False when the stream was in none. */
  bool leave();
  ConferencePort* conference() const { return conference_.get(); }
  /** Whether the others of a conference do not hear this stream. */
  bool muted() const;
  /** Ends prompts, feeds and keys, and reports their ends. */
  void close();
  void stop_clock() { timer_.cancel(); }
  /** Starts or stops the silence of an idle stream. Call it after any change of what the stream sends or may send. */
  void look_idle(uint64_t now_us);

  /** Sends the noise of a relayed sender's pause as audio to a peer that takes no comfort noise packets. */
  void sound_pause(const uint8_t* payload, size_t n, uint64_t now_us);
  /** Ends the noise of a pause, because the sender speaks again. */
  void interrupt_pause() {
    if (pause_.on()) end_pause();
  }
  /** Ends the noise of a pause, and the clock if no other source needs it. */
  void end_pause();

  /** Starts the clock of the sources. It stops when no source is left. */
  void start_clock(uint64_t now_us);

 private:
  bool any() const;
  bool idle(uint64_t now_us) const;
  bool waits_for_path(uint64_t now_us) const;
  void tick(uint64_t now_us);
  void send_audio(uint64_t now_us);
  bool send_announcement(uint64_t now_us);
  void send_conference(uint64_t now_us);
  bool keys_tick(uint64_t now_us);
  void send_tones(int event, uint64_t now_us);
  void end_play(const char* reason);
  void tell_marks(const std::vector<std::string>& marks);
  void tell_keys(bool sent);

  Stream& stream_;
  std::unique_ptr<Player> player_;
  std::unique_ptr<Feed> feed_, announcement_;
  std::unique_ptr<KeySender> keys_;
  double tone_phase_[2] = {};
  std::shared_ptr<ConferencePort> conference_;
  ComfortNoise pause_;
  Timer timer_;
  uint64_t due_us_ = 0, since_us_ = 0;
};

}  // namespace media
