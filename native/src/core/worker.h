// A packet thread: sockets by io_uring or epoll, received packets by a ring of frames too, one wake-up a millisecond at
// most, timers, commands.
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
  bool io_uring = true;  // epoll alone when false, or when the kernel does not allow it
  bool packet_ring = true;  // latched streams are received by a PacketRing, where that is allowed
  bool realtime = true;  // before all other processes of the machine, where that is allowed
};

class Worker {
 public:
  Worker(int index, WorkerOptions options, EventQueue& events, Recorder& recorder, const std::vector<Network>& denied,
         PortPool& ports);
  ~Worker();

  /** Runs on the packet thread, in order. */
  void post(std::function<void(uint64_t now_us)> command);
  void stop();
  /** On the control thread: opens the packet ring before the first stream that it is for, so that an idle thread pays
   * nothing for it and a busy one does not wait for the kernel. */
  void want_packet_ring();
  unsigned index() const { return static_cast<unsigned>(index_); }

  // On the packet thread only.
  void open(uint32_t id, Policy policy, PortPair sockets, std::shared_ptr<StreamCounters> counters, std::string cname,
            uint64_t now_us);
  void close(uint32_t id, uint64_t now_us);
  Stream* find(uint32_t id);
  void open_conference(uint32_t id, int rate_hz);
  void close_conference(uint32_t id);
  Conference* find_conference(uint32_t id);

  const ThreadCounters& counters() const { return counters_; }
  /** Where this thread's packets wait for the recorder. */
  const std::shared_ptr<ChunkPool>& chunks() const { return chunks_; }
  double cpu_seconds() const;
  /** Whether this thread's packets come and go by io_uring. */
  bool rings() const { return rings_.load(std::memory_order_relaxed); }
  /** Whether latched streams are received by a packet ring as soon as there are any. */
  bool packet_ring() const { return packet_ring_allowed_.load(std::memory_order_relaxed); }
  /** Whether this thread has real-time priority, unless it has too much to do for that. */
  bool realtime() const { return realtime_.load(std::memory_order_relaxed); }
  std::atomic<int> load{0};  // sessions, kept by the control thread

 private:
  struct Leg;
  enum class Which : uint8_t { rtp, rtcp, guard, packet_ring };
  struct Socket {
    Leg* leg;
    Which which;
  };
  struct Mixer {
    Mixer(int rate) : conference(rate) {}
    Conference conference;
    Timer timer;
    uint64_t due_us = 0;
    Worker* worker = nullptr;
  };

  /** Where the ring's completions find their leg. A turn of its own for each owner, so that late ones are known. */
  struct Place {
    Leg* leg = nullptr;
    Stream* stream = nullptr;
    uint32_t turn = 0;
  };

  /** Whose frames the packet ring brings, by the port to which they go. Addresses in network byte order. */
  struct alignas(32) Shown {
    Leg* leg = nullptr;
    Stream* stream = nullptr;
    uint32_t peer_ip = 0, own_ip = 0;
    uint16_t peer_port = 0;
  };

  void run();
  void pause();
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
  std::unique_ptr<Uring> ring_;  // on the packet thread only
  std::vector<Place> places_;
  std::vector<uint32_t> free_places_;
  bool epoll_watched_ = false;
  std::shared_ptr<PacketRing> packet_ring_;  // on the packet thread only
  PortClass ports_shown_;
  std::vector<Shown> shown_;
  std::vector<uint16_t> changing_;  // ports of those that may board the packet ring or leave it
  bool frames_flow_ = false, frames_watched_ = false;
  uint64_t drops_looked_us_ = 0;
  Socket frames_{nullptr, Which::packet_ring};
  uint64_t now_us_ = 0, woke_us_ = 0;
  double packets_per_us_ = 0;
  RealtimePriority priority_;
  std::atomic<bool> rings_{false};
  std::atomic<bool> packet_ring_allowed_{false};
  bool packet_ring_wanted_ = false;  // on the control thread only, as what follows
  int ring_reserved_ = -1;           // opened while the process may
  std::atomic<bool> realtime_{false};
  std::atomic<bool> running_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> has_clock_{false};
  clockid_t cpu_clock_{};
  alignas(64) uint8_t buffer_[2048 + kTailRoom];
  std::thread thread_;
};

}  // namespace media
