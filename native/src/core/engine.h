// The whole data plane. Its owner calls all members on one thread, the control thread.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "events.h"
#include "ports.h"
#include "recorder.h"
#include "worker.h"

namespace media {

struct EngineOptions {
  int threads = 1;
  Address bind, second_bind;
  uint16_t port_min = 0, port_max = 0;
  uint64_t quarantine_ms = 30'000;
  std::vector<Network> denied;
  WorkerOptions worker;
  size_t event_queue = 16'384;
};

struct RecordRequest {
  RecordConfig config;
  uint32_t left = 0, right = 0;
  bool both = false;
  bool sent_only = false;  // mono: only what is sent to `left`
};

class Engine {
 public:
  explicit Engine(EngineOptions options);
  ~Engine();

  EventQueue& events() { return events_; }

  uint32_t open_session();
  void close_session(uint32_t session);
  struct Opened {
    uint32_t id = 0;
    uint16_t rtp_port = 0, rtcp_port = 0;
  };
  /** Opens a stream. False when no port is free or the session is unknown. */
  bool open_stream(uint32_t session, Policy policy, Opened& out);
  void close_stream(uint32_t id);
  void describe(uint32_t id, StreamConfig config);
  void bridge(uint32_t a, uint32_t b);
  void unbridge(uint32_t a);
  /** Runs `act` on the stream's thread if the stream still exists by then. */
  void with(uint32_t id, std::function<void(Stream&, uint64_t now_us)> act);
  void record(RecordRequest request);
  /** Records the mix of a conference until it closes; with two channels also `left`, on a channel of its own. */
  void record_conference(uint32_t conference, RecordRequest request);
  void stop_record(const std::string& id);
  void pause_record(const std::string& id, bool paused, bool silent);
  uint32_t open_conference(int rate_hz);
  void close_conference(uint32_t id);
  void join(uint32_t conference, uint32_t stream, bool muted, bool deaf, uint32_t heard_by = 0);
  void leave(uint32_t stream);

  std::shared_ptr<StreamCounters> counters(uint32_t id);
  const std::vector<std::unique_ptr<Worker>>& workers() const { return workers_; }
  PortPool& ports() { return ports_; }
  Recorder& recorder() { return recorder_; }
  /** Forgets a recording after its end was reported. */
  void forget_record(const std::string& id);
  void close();

 private:
  struct StreamEntry {
    Worker* worker;
    uint32_t session;
    std::shared_ptr<StreamCounters> counters;
    uint32_t conference = 0;
    std::shared_ptr<ConferencePort> port;
  };
  struct RecordEntry {
    std::shared_ptr<Recording> recording;
    Worker* worker;
    uint32_t left, right;
    uint32_t conference = 0;
  };
  struct SessionEntry {
    Worker* worker;
    std::string cname;
  };

  std::vector<Network> denied_;
  EventQueue events_;
  PortPool ports_;
  Recorder recorder_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unordered_map<uint32_t, SessionEntry> sessions_;
  std::unordered_map<uint32_t, StreamEntry> streams_;
  std::unordered_map<std::string, RecordEntry> recordings_;
  struct ConferenceEntry {
    Worker* worker;
    int rate_hz;
  };
  std::unordered_map<uint32_t, ConferenceEntry> conferences_;
  uint32_t next_id_ = 1;
};

}  // namespace media
