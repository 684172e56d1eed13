// Recording on a simulated clock: alignment over an hour with drift, loss and pauses; the ends of recordings; stalls.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "../src/codec/g711.h"
#include "../src/core/recording.h"
#include "check.h"
#include "signal.h"

using namespace media;

namespace {

std::string folder() {
  char name[] = "/tmp/recording-XXXXXX";
  return mkdtemp(name);
}

std::vector<int16_t> samples_of(const std::string& file) {
  std::vector<int16_t> out;
  FILE* f = std::fopen(file.c_str(), "rb");
  if (!f) return out;
  std::fseek(f, 0, SEEK_END);
  const long size = std::ftell(f);
  out.resize(size > 44 ? static_cast<size_t>(size - 44) / 2 : 0);
  std::fseek(f, 44, SEEK_SET);
  if (std::fread(out.data(), 2, out.size(), f) != out.size()) out.clear();
  std::fclose(f);
  return out;
}

/** A sender whose clock is off by `ppm` parts per million. Its audio is a 20 ms click at each second of wall time. */
struct Sender {
  double ppm;
  int track;
  uint32_t ts;
  uint16_t seq;
  uint64_t sent = 0;
  bool quiet = false;

  double sample_us(double sample) const { return sample * 125 * (1 - ppm / 1e6); }
  /** Returns when the next packet leaves: once its last sample has been captured. */
  uint64_t due_us(uint64_t start) const {
    return start + static_cast<uint64_t>(sample_us(static_cast<double>(sent + 1) * 160));
  }
  void send(Recording& r, uint64_t now_us, bool lost) {
    uint8_t payload[160];
    bool clicks = false;
    const uint8_t loud = g711().to_ulaw[8000], silence = g711().to_ulaw[0];
    double in_second_us = std::fmod(sample_us(static_cast<double>(sent) * 160), 1e6);
    const double sample = sample_us(1);
    for (int i = 0; i < 160; ++i, in_second_us += sample) {
      if (in_second_us >= 1e6) in_second_us -= 1e6;
      const bool click = in_second_us < 20'000;
      clicks = clicks || click;
      payload[i] = click ? loud : silence;
    }
    // Never lose a click, because it is measured.
    if ((!lost || clicks) && !quiet) r.packet_audio(track, 1, seq, ts, 8000, CodecId::pcmu, payload, 160, now_us);
    ++seq;
    ts += 160;
    ++sent;
  }
};

void drift() {
  const std::string dir = folder(), file = dir + "/drift.wav";
  RecordConfig config;
  config.id = "drift";
  config.file = file;
  config.channels = 2;
  Recording r(config, std::make_shared<ChunkPool>());
  RecordDesk desk;
  r.set_channel(1, 1);
  const uint64_t start = 1'000'000'000;
  r.writer_open(start);
  Sender left{+100, 0, 0xfffff000, 65500}, right{-100, 1, 77, 3};
  unsigned random = 1;
  const uint64_t hour = 3'600'000'000ull;
  for (uint64_t now = start; now < start + hour; now += 1000) {
    for (Sender* s : {&left, &right}) {
      while (s->due_us(start) <= now) {
        random = random * 1664525u + 1013904223u;
        // The right party pauses (DTX) in minutes 10 to 12. The left party holds in minutes 20 to 25.
        const uint64_t t = (now - start) / 1'000'000;
        s->quiet = (s == &left && t >= 1200 && t < 1500) || (s == &right && t >= 600 && t < 720);
        s->send(r, now, (random >> 16) % 100 < 3);
      }
    }
    if (now % 250'000 == 0) r.writer_advance(desk, now);
  }
  r.packet_end(RecordEnd::stopped, start + hour);
  r.writer_advance(desk, start + hour);
  Event e;
  r.writer_finish(e);
  check::ok(e.text == "stopped" && e.a == 3'600'000, "a recording of an hour has the exact length in milliseconds");
  const auto pcm = samples_of(file);
  check::equal(pcm.size(), size_t{3600} * 8000 * 2, "the file holds an hour of both channels");
  constexpr double kNone = -1e9;
  double worst = 0;
  int seen = 0;
  for (int second = 1; second < 3600; ++second) {
    double at[2] = {kNone, kNone};
    for (int ch = 0; ch < 2; ++ch)
      for (int i = -480; i < 800 && at[ch] == kNone; ++i) {
        const size_t frame = static_cast<size_t>(second * 8000 + i);
        if (frame * 2 + 1 < pcm.size() && std::abs(pcm[frame * 2 + static_cast<size_t>(ch)]) > 3000) at[ch] = i;
      }
    if (at[0] == kNone || at[1] == kNone) continue;
    ++seen;
    worst = std::max(worst, std::abs(at[0] - at[1]) / 8);
  }
  check::ok(seen > 2500, "most clicks of the hour are found on both channels");
  check::within(worst, 0, 20,
                "the channels stay within 20 ms of each other for an hour of ±100 ppm, loss, pauses and a hold");
  std::printf("# farthest apart: %.2f ms\n", worst);
  std::remove(file.c_str());
  rmdir(dir.c_str());
}

void ends() {
  const std::string dir = folder();
  uint8_t quiet[160], loud[160];
  std::memset(quiet, 0xff, sizeof quiet);
  for (int i = 0; i < 160; ++i)
    loud[i] = g711().to_ulaw[static_cast<uint16_t>(static_cast<int16_t>(i % 8 < 4 ? 6000 : -6000))];
  const auto run = [&](RecordConfig c, int speech_ms, int total_ms,
                       const std::function<void(Recording&, uint64_t)>& at) {
    Recording r(c, std::make_shared<ChunkPool>());
    RecordDesk desk;
    const uint64_t start = 5'000'000;
    r.writer_open(start);
    Event e;
    for (int ms = 0; ms < total_ms; ms += 20) {
      const uint64_t now = start + static_cast<uint64_t>(ms) * 1000;
      r.packet_audio(0, ms < total_ms / 2 ? 1 : 2, static_cast<uint16_t>((ms < total_ms / 2 ? 40'000 : 100) + ms / 20),
                     static_cast<uint32_t>(ms * 8), 8000, CodecId::pcmu, ms < speech_ms ? loud : quiet, 160, now);
      if (at) at(r, static_cast<uint64_t>(ms));
      if (ms % 240 == 0 && r.writer_advance(desk, now)) break;
    }
    r.packet_end(RecordEnd::leg_closed, start + static_cast<uint64_t>(total_ms) * 1000);
    r.writer_advance(desk, start + static_cast<uint64_t>(total_ms) * 1000);
    r.writer_finish(e);
    return e;
  };
  RecordConfig c;
  c.id = "x";
  c.file = dir + "/x.wav";
  c.silence_ms = 2000;
  Event e = run(c, 3000, 20'000, nullptr);
  check::ok(e.text == "silence" && e.a >= 4900 && e.a <= 5700, "two seconds of silence end a recording");
  c.trim = true;
  e = run(c, 3000, 20'000, nullptr);
  check::within(static_cast<double>(e.a), 2980, 3060, "trimming removes the silence at the end");
  c.trim = false;
  c.silence_ms = 0;
  c.max_ms = 4000;
  e = run(c, 20'000, 20'000, nullptr);
  check::ok(e.text == "max_length" && e.a == 4000, "a recording ends exactly at its maximum length");
  c.max_ms = 0;
  c.finish_keys = "#";
  e = run(c, 20'000, 10'000, [](Recording& r, uint64_t ms) {
    if (ms == 3000) r.packet_key('5', 5'000'000 + ms * 1000);
    if (ms == 6000) r.packet_key('#', 5'000'000 + ms * 1000);
  });
  check::ok(e.text == "key" && e.detail == "#" && e.a == 6000,
            "only a finishing key ends a recording, at the time of the key");
  e = run(c, 20'000, 10'000, [](Recording& r, uint64_t ms) {
    if (ms == 2000) r.packet_pause(true, false, 5'000'000 + ms * 1000);
    if (ms == 7000) r.packet_pause(false, false, 5'000'000 + ms * 1000);
  });
  check::ok(e.text == "leg_closed" && e.a == 5000, "the file leaves out a pause of five seconds");
  check::equal(e.sha256.size(), size_t{64}, "the end event has a SHA-256 digest");
  Recording silent(c, std::make_shared<ChunkPool>());
  RecordDesk desk;
  silent.writer_open(0);
  silent.packet_end(RecordEnd::leg_closed, 1'000'000);
  silent.writer_advance(desk, 1'000'000);
  silent.writer_finish(e);
  check::ok(e.flag && e.a == 1000, "a recording of a leg without packets is silent and reported as empty");
  c.file = "/dev/full";
  e = run(c, 2000, 3000, nullptr);
  check::ok(e.text == "disk_full", "a full disk ends the recording with disk_full");
  c.file = dir + "/nowhere/x.wav";
  e = run(c, 2000, 3000, nullptr);
  check::ok(e.text == "failed" && !e.detail.empty(), "a missing folder ends the recording with failed and a detail");
  std::remove((dir + "/x.wav").c_str());
  rmdir(dir.c_str());
}

/** Records a second of sound with a pause from 300 to 700 ms, in which the sender stands still for 100 ms. The writer
 * comes every `period_ms`. */
std::vector<int16_t> with_pause(const std::string& file, bool silent, int period_ms) {
  RecordConfig c;
  c.id = "paused";
  c.file = file;
  Recording r(c, std::make_shared<ChunkPool>());
  RecordDesk desk;
  const uint64_t start = 9'000'000;
  const auto at = [&](int ms) { return start + static_cast<uint64_t>(ms) * 1000; };
  r.writer_open(start);
  uint8_t loud[160];
  std::memset(loud, g711().to_ulaw[8000], sizeof loud);
  int sent = 0;
  for (int ms = 0; ms < 1000; ms += 20) {
    if (ms == 300) r.packet_pause(true, silent, at(ms));
    if (ms == 700) r.packet_pause(false, silent, at(ms));
    if (ms < 400 || ms >= 500) {
      r.packet_audio(0, 1, static_cast<uint16_t>(sent), static_cast<uint32_t>(sent * 160), 8000, CodecId::pcmu, loud,
                     160, at(ms));
      ++sent;
    }
    if (ms % period_ms == 0) r.writer_advance(desk, at(ms));
  }
  r.packet_end(RecordEnd::stopped, at(1000));
  r.writer_advance(desk, at(1000));
  Event e;
  r.writer_finish(e);
  const auto samples = samples_of(file);
  std::remove(file.c_str());
  return samples;
}

void recorded_pauses() {
  const std::string dir = folder(), file = dir + "/paused.wav";
  for (const int period_ms : {20, 2000}) {
    const auto quiet = with_pause(file, true, period_ms);
    check::equal(quiet.size(), size_t{8000}, "a silent pause keeps its time");
    bool right = true;
    for (size_t i = 0; i < quiet.size(); ++i) right = right && (quiet[i] == 0) == (i >= 300 * 8 && i < 700 * 8);
    check::ok(right, "the file has silence in exactly the pause, however late the writer comes");
    const auto cut = with_pause(file, false, period_ms);
    check::ok(cut.size() == 600 * 8 && std::none_of(cut.begin(), cut.end(), [](int16_t s) { return s == 0; }),
              "a pause that is left out takes no sound from before or after it, however late the writer comes");
  }
  rmdir(dir.c_str());
}

/** Records a tone on each channel of a call. The writer runs when `comes` returns true, and at the end. */
std::vector<int16_t> conversation(const std::string& file, int total_ms, const std::function<bool(int)>& comes,
                                  uint64_t& dropped) {
  RecordConfig c;
  c.id = "stall";
  c.file = file;
  c.channels = 2;
  Recording r(c, std::make_shared<ChunkPool>());
  r.set_channel(1, 1);
  RecordDesk desk;
  const uint64_t start = 7'000'000;
  r.writer_open(start);
  for (int ms = 20; ms <= total_ms; ms += 20) {
    const uint64_t now = start + static_cast<uint64_t>(ms) * 1000;
    for (int track = 0; track < 2; ++track) {
      uint8_t payload[160];
      for (int i = 0; i < 160; ++i) {
        const double phase = 2 * M_PI * (track ? 300 : 500) * (ms * 8 + i) / 8000;
        payload[i] = g711().to_ulaw[static_cast<uint16_t>(static_cast<int16_t>(9000 * std::sin(phase)))];
      }
      r.packet_audio(track, 1, static_cast<uint16_t>(ms / 20), static_cast<uint32_t>(ms * 8), 8000, CodecId::pcmu,
                     payload, 160, now);
    }
    if (comes(ms)) r.writer_advance(desk, now);
  }
  r.packet_end(RecordEnd::stopped, start + static_cast<uint64_t>(total_ms) * 1000);
  r.writer_advance(desk, start + static_cast<uint64_t>(total_ms) * 1000);
  Event e;
  r.writer_finish(e);
  dropped = r.dropped();
  check::ok(std::all_of(desk.line[0].begin(), desk.line[0].end(), [](int16_t s) { return s == 0; }),
            "a recording leaves the desk empty");
  return samples_of(file);
}

void stalls() {
  const std::string dir = folder(), file = dir + "/stall.wav";
  uint64_t dropped = 0;
  const auto steady = conversation(file, 8000, [](int ms) { return ms % 100 == 0; }, dropped);
  check::equal(steady.size(), size_t{8} * 8000 * 2, "a steady writer writes eight seconds of both channels");
  const auto late = conversation(file, 8000, [](int ms) { return ms == 6000; }, dropped);
  check::ok(dropped == 0 && late == steady, "a writer that stalls for six seconds loses nothing");
  const auto never = conversation(file, 60'000, [](int) { return false; }, dropped);
  check::equal(never.size(), size_t{60} * 8000 * 2, "a recording keeps its length after a stall of a minute");
  check::ok(dropped > 0 && std::equal(steady.begin(), steady.begin() + 16 * 5000, never.begin()),
            "a recording keeps the audio that fits during a long stall, and counts the rest");
  std::remove(file.c_str());
  rmdir(dir.c_str());
}

/** Records the same sound on both channels. The network holds up the first packet of the left one by 40 ms. The sender
 * captured it `before_ms` before the recording began; the writer comes every `period_ms`. */
std::vector<int16_t> with_late_start(const std::string& file, int before_ms, int period_ms) {
  RecordConfig c;
  c.id = "late";
  c.file = file;
  c.channels = 2;
  Recording r(c, std::make_shared<ChunkPool>());
  r.set_channel(1, 1);
  RecordDesk desk;
  const uint64_t start = 3'000'000;
  const auto at = [&](int ms) { return start + static_cast<uint64_t>(ms) * 1000; };
  r.writer_open(start);
  const auto send = [&](int track, int n, int ms) {
    uint8_t payload[160];
    std::memset(payload, g711().to_ulaw[1000 + 100 * n], sizeof payload);
    const auto seq = static_cast<uint16_t>(65'530 + n);
    r.packet_audio(track, 1, seq, static_cast<uint32_t>(n * 160), 8000, CodecId::pcmu, payload, 160, at(ms));
  };
  for (int ms = 0; ms < 3000; ms += 20) {
    const int n = (ms + before_ms) / 20;
    if (ms == 40 - before_ms) send(0, 0, ms);
    if (n > 0) send(0, n, ms);
    send(1, n, ms);
    if (ms % period_ms == 0) r.writer_advance(desk, at(ms));
  }
  r.packet_end(RecordEnd::stopped, at(3000));
  r.writer_advance(desk, at(3000));
  Event e;
  r.writer_finish(e);
  const auto samples = samples_of(file);
  std::remove(file.c_str());
  return samples;
}

void late_starts() {
  const std::string dir = folder();
  for (const int before_ms : {0, 20})
    for (const int period_ms : {20, 1000}) {
      const auto pcm = with_late_start(dir + "/late.wav", before_ms, period_ms);
      bool same = pcm.size() == size_t{3} * 8000 * 2;
      for (size_t i = 0; same && i < pcm.size(); i += 2) same = pcm[i] == pcm[i + 1] && pcm[i] != 0;
      check::ok(same, "a late first packet shifts no channel and costs no sound (begun " + std::to_string(before_ms) +
                          " ms before the recording, a writer every " + std::to_string(period_ms) + " ms)");
    }
  rmdir(dir.c_str());
}

}  // namespace

void recording_tests() {
  drift();
  ends();
  recorded_pauses();
  stalls();
  late_starts();
}
