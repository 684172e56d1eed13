// A packet thread. It reads sockets through io_uring or epoll, and latched streams through a packet ring. It also runs
// timers and commands. It wakes at most once a millisecond.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "conference.h"
#include "packet_ring.h"
#include "ports.h"
#include "queue.h"
#include "realtime.h"
#include "stream.h"
#include "uring.h"

namespace media {

struct WorkerOptions {
  unsigned coalesce_us = 1000;
  int opus_complexity = 5;
  bool io_uring = true;  // false: use only epoll, as when the kernel forbids io_uring
  bool packet_ring = true;  // receive latched streams through a PacketRing where allowed
  bool realtime = true;  // use real-time priority where allowed
};

class Worker {
 public:
  Worker(int index, WorkerOptions options, EventQueue& events, Recorder& recorder, const std::vector<Network>& denied,
         PortPool& ports);
  ~Worker();

  /** Runs `command` on the packet thread. Commands run in order. */
  void post(std::function<void(uint64_t now_us)> command);
  void stop();
  /** Opens the packet ring before the first stream that can use it, so that an idle thread pays nothing for it and a
   * busy one does not wait for the kernel. Called on the control thread. */
  void want_packet_ring();
  unsigned index() const { return static_cast<unsigned>(index_); }

  // Called on the packet thread only.
  void open(uint32_t id, Policy policy, PortPair sockets, std::shared_ptr<StreamCounters> counters, std::string cname,
            uint64_t now_us);
  void close(uint32_t id, uint64_t now_us);
  Stream* find(uint32_t id);
  void open_conference(uint32_t id, int rate_hz);
  void close_conference(uint32_t id);
  Conference* find_conference(uint32_t id);

  const ThreadCounters& counters() const { return counters_; }
  /** Returns the pool of chunks in which this thread's packets wait for the recorder. */
  const std::shared_ptr<ChunkPool>& chunks() const { return chunks_; }
  double cpu_seconds() const;
  /** Reports whether this thread uses io_uring. */
  bool rings() const { return rings_.load(std::memory_order_relaxed); }
  /** Reports whether latched streams will use a packet ring. The first stream opens it. */
  bool packet_ring() const { return packet_ring_allowed_.load(std::memory_order_relaxed); }
  /** Reports whether the system granted real-time priority. A busy thread gives it up for a while. */
  bool realtime() const { return realtime_.load(std::memory_order_relaxed); }
  std::atomic<int> load{0};  // number of sessions; written by the control thread

 private:
  struct Leg;
  enum class Which : uint8_t { rtp, rtcp, guard, packet_ring };
  struct Socket {
    Leg* leg;
    Which which;
  };
  struct Mixer {
    Mixer(int rate, Recorder& recorder) : conference(rate, recorder) {}
    Conference conference;
    Timer timer;
    uint64_t due_us = 0;
    Worker* worker = nullptr;
  };

  /** Maps a completion to its leg. `turn` changes with each owner of the place, which exposes late completions. */
  struct Place {
    Leg* leg = nullptr;
    Stream* stream = nullptr;
    uint32_t turn = 0;
  };

  /** The flow that the packet ring delivers for a port. Addresses are in network byte order. */
  struct alignas(32) Shown {
    Leg* leg = nullptr;
    Stream* stream = nullptr;
    uint32_t peer_ip = 0, own_ip = 0;
    uint16_t peer_port = 0;
  };

  void run();
  void pause();
  bool take_packets(int limit_ms);
  bool catch_up();
  int take_ready(int timeout_ms);
  void take_completions();
  void fetch_ahead(int next);
  void complete(const Uring::Completion& c, uint64_t now_us);
  bool read(Socket& s, uint64_t now_us);
  void take_frames();
  void take_frame(const PacketRing::Frame& frame);
  void fetch_frames_ahead(int next);
  void watch_frames(bool watched);
  Shown* shown_at(uint16_t rtp_port);

  const int index_;
  const WorkerOptions options_;
  PortPool& ports_;
  TimerWheel wheel_;
  ThreadCounters counters_;
  ThreadContext context_;
  CommandQueue commands_;
  const std::shared_ptr<ChunkPool> chunks_ = std::make_shared<ChunkPool>();
  std::unordered_map<uint32_t, std::unique_ptr<Leg>> legs_;
  std::unordered_map<uint32_t, std::unique_ptr<Mixer>> mixers_;
  int epoll_fd_, wake_fd_;
  std::unique_ptr<Uring> ring_;  // packet thread only
  std::vector<Place> places_;
  std::vector<uint32_t> free_places_;
  bool epoll_watched_ = false;
  std::shared_ptr<PacketRing> packet_ring_;  // packet thread only
  PortClass ports_shown_;
  std::vector<Shown> shown_;
  std::vector<uint16_t> changing_;  // ports of legs that may enter the packet ring or leave it
  bool frames_flow_ = false, frames_watched_ = false;
  uint64_t drops_looked_us_ = 0;
  Socket frames_{nullptr, Which::packet_ring};
  uint64_t now_us_ = 0, woke_us_ = 0;
  uint64_t wakes_us_ = 0;  // when the current wait ends at the latest
  double packets_per_us_ = 0;
  RealtimePriority priority_;
  std::atomic<bool> rings_{false};
  std::atomic<bool> packet_ring_allowed_{false};
  bool packet_ring_wanted_ = false;  // control thread only
  int ring_reserved_ = -1;           // control thread only; opened while the process has CAP_NET_RAW
  std::atomic<bool> realtime_{false};
  std::atomic<bool> running_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> has_clock_{false};
  clockid_t cpu_clock_{};
  alignas(64) uint8_t buffer_[2048 + kTailRoom];
  std::thread thread_;
};

}  // namespace media
