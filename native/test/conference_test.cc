// The mix of a conference, tick by tick: who hears whom, what is shared, and what a recording gets.
#include <cmath>
#include <set>
#include <vector>

#include "../src/codec/g711.h"
#include "../src/core/conference.h"
#include "../src/core/recorder.h"
#include "check.h"

using namespace media;

namespace {

constexpr int kFrame = 160;
constexpr PacketFormat kPcmuFormat{CodecId::pcmu, 8, 5, false, 0}, kOpusFormat{CodecId::opus, 8, 5, false, 0};

struct Room {
  EventQueue events{16};
  Recorder recorder{events};
  Conference conference{8000, recorder};
  std::vector<std::shared_ptr<ConferencePort>> ports;
  uint64_t now = 1'000'000;

  explicit Room(size_t size) {
    for (size_t i = 0; i < size; ++i) {
      auto port = std::make_shared<ConferencePort>(8000);
      port->stream = static_cast<uint32_t>(i + 1);
      port->format = i % 2 ? kOpusFormat : kPcmuFormat;
      if (conference.add(port)) ports.push_back(port);
    }
  }
  /** Each port says its level for a tick. Returns what each port gets. */
  std::vector<std::shared_ptr<const Mix>> tick(const std::vector<int16_t>& levels) {
    for (size_t i = 0; i < ports.size(); ++i) {
      const std::vector<int16_t> pcm(kFrame, levels[i]);
      ports[i]->in.write(pcm.data(), pcm.size());
    }
    conference.tick(now += 20'000);
    std::vector<std::shared_ptr<const Mix>> got;
    for (const auto& p : ports) got.push_back(p->out.read());
    return got;
  }
  std::vector<std::shared_ptr<const Mix>> ticks(int n, const std::vector<int16_t>& levels) {
    std::vector<std::shared_ptr<const Mix>> got;
    for (int i = 0; i < n; ++i) got = tick(levels);
    return got;
  }
};

void a_full_room() {
  Room r(251);
  check::equal(r.ports.size(), size_t{250}, "a room holds 250");
  std::vector<int16_t> levels(250, 15);
  levels[0] = 1000, levels[1] = 2000, levels[2] = 4000;
  auto got = r.ticks(40, levels);
  std::set<const Mix*> mixes;
  for (const auto& m : got) mixes.insert(m.get());
  check::equal(mixes.size(), size_t{5}, "three who talk get a mix each, the others share one for each format");
  check::equal(int{got[0]->pcm[0]}, 6000, "who talks hears the others");
  check::equal(int{got[2]->pcm[0]}, 3000, "each without the own voice");
  check::equal(int{got[9]->pcm[0]}, 7000, "the others hear all who talk, and no noise of 247 lines");
  check::ok(got[0]->packet.empty(), "nobody shares the packet of a mix for one");
  check::ok(got[10]->format == kPcmuFormat && got[10]->packet.size() == kFrame, "the shared mix comes encoded");
  check::within(g711().from_ulaw[got[10]->packet[0]], 6800, 7200, "the packet holds the mix");
  check::ok(got[11]->format == kOpusFormat && !got[11]->packet.empty() && got[11]->packet.size() < kFrame, "for each format");
  levels[100] = 500;
  got = r.tick(levels);
  got = r.tick(levels);
  check::ok(got[100] != got[102] && got[100]->pcm[0] == 7000, "a listener who begins to talk gets a mix at once");
  check::equal(int{got[102]->pcm[0]}, 7500, "and is heard at once");
  levels[100] = 15;
  got = r.ticks(20, levels);
  check::ok(got[100] != got[102], "the ends of words belong to the talk");
  got = r.ticks(20, levels);
  check::ok(got[100] == got[102], "half a second later the listener shares the mix again");
  r.ports[1]->muted = true;
  r.ports[5]->deaf = true;
  got = r.tick(levels);
  check::ok(got[102]->pcm[0] == 5000 && got[1] == got[11], "a muted participant is a listener");
  check::ok(got[5] == nullptr, "a deaf participant costs no mix");
  r.ports[0]->heard_by = 103;
  got = r.tick(levels);
  check::ok(got[102]->pcm[0] == 5000 && got[104]->pcm[0] == 4000, "a coach is heard by one");
  for (size_t i = 3; i < 250; ++i) r.ports[i]->left = true;
  r.conference.tick(r.now += 20'000);
  check::equal(r.conference.size(), size_t{3}, "who left is gone");
}

void a_small_room() {
  Room r(3);
  const auto got = r.ticks(60, {15, 20, 0});
  check::equal(int{got[2]->pcm[0]}, 35, "in a small room the noise of the lines is heard");
  check::equal(int{got[0]->pcm[0]}, 20, "by each participant without the own");
}

}  // namespace

void conference_tests() {
  a_full_room();
  a_small_room();
}
