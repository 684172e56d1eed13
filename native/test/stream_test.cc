// Streams with a simulated clock and wire: relaying, transcoding, keys, prompts, reports, and switches between sources.
#include <cmath>
#include <string>
#include <vector>

#include "../src/codec/g711.h"
#include "check.h"
#include "legs.h"

using namespace legs;

namespace {

void relaying() {
  Pair p(kUlaw, kUlaw);
  uint16_t seq = 65000;
  uint32_t ts = 0xfffff000;
  for (int i = 0; i < 2000; ++i) {
    p.a.receive(rtp(0, seq++, ts, 11), p.ra);
    ts += 160;
    p.w.run(20);
  }
  check::ok(p.b.sent.size() == 2000 && continuous(p.b.sent),
            "2,000 packets across both wraps are relayed as one stream");
  check::equal(ts_of(p.b.sent[1999]) - ts_of(p.b.sent[0]), 1999u * 160, "relayed packets keep the sender's timing");
  check::ok(p.b.sent_to[0] == p.rb, "packets go to the signalled address before the peer has sent any");
  // Another source with a new SSRC and other numbers starts half a second later.
  p.w.run(500);
  const uint32_t before = ts_of(p.b.sent.back());
  for (int i = 0; i < 10; ++i) {
    p.a.receive(rtp(0, static_cast<uint16_t>(i + 7), 5000 + static_cast<uint32_t>(i) * 160, 12), p.ra);
    p.w.run(20);
  }
  check::ok(p.b.sent.size() == 2010 && continuous(p.b.sent), "another SSRC continues the sequence numbers");
  check::within(ts_of(p.b.sent[2000]) - before, 4000, 4320, "another SSRC advances the clock by the elapsed time");
  check::ok(p.b.sent[2000][1] & 0x80, "the first packet of another SSRC has the marker");
  // Loss and reordering stay visible.
  const auto base = seq_of(p.b.sent.back());
  for (const uint16_t s : {20, 18, 19}) p.a.receive(rtp(0, s, 5000 + (s - 7u) * 160, 12), p.ra);
  const size_t n = p.b.sent.size();
  check::ok(static_cast<uint16_t>(seq_of(p.b.sent[n - 3]) - base) == 4 &&
                static_cast<uint16_t>(seq_of(p.b.sent[n - 2]) - base) == 2,
            "loss and reordering are relayed unchanged");
  p.a.receive(rtp(0, 19, 5000 + 12 * 160, 12), p.ra);
  check::ok(p.b.sent.size() == n && p.a.counters->duplicate == 1, "a duplicate is not relayed");
  // A play interrupts the relay.
  Piece tone;
  tone.kind = Piece::Kind::tone;
  tone.hz[0] = 440;
  tone.tones = 1;
  tone.on_ms = tone.total_ms = 200;
  const size_t played_from = p.b.sent.size();
  p.b.stream->play(std::make_unique<Player>("x", std::vector<Piece>{tone}, 1), p.w.now);
  for (int i = 0; i < 10; ++i) {
    p.a.receive(rtp(0, static_cast<uint16_t>(21 + i), 5000 + static_cast<uint32_t>(14 + i) * 160, 12), p.ra);
    p.w.run(20);
  }
  check::equal(p.b.sent.size() - played_from, size_t{10}, "a play replaces the bridge");
  check::ok(continuous(p.b.sent, played_from + 1), "sequence numbers continue in a play");
  p.w.run(40);
  for (int i = 0; i < 5; ++i) {
    p.a.receive(rtp(0, static_cast<uint16_t>(31 + i), 5000 + static_cast<uint32_t>(24 + i) * 160, 12), p.ra);
    p.w.run(20);
  }
  check::ok(continuous(p.b.sent, played_from + 1) && p.b.sent.size() >= played_from + 15,
            "sequence numbers continue after a play");
  check::equal(p.w.count(EventType::play_ended), 1, "the end of a play is reported once");
  // The stream is put on hold and resumed.
  StreamConfig held = config(p.rb, kUlaw);
  held.may_send = false;
  p.b.stream->describe(held, p.w.now);
  const size_t at_hold = p.b.sent.size();
  for (int i = 0; i < 50; ++i) {
    p.a.receive(rtp(0, static_cast<uint16_t>(36 + i), 5000 + static_cast<uint32_t>(29 + i) * 160, 12), p.ra);
    p.w.run(20);
  }
  check::equal(p.b.sent.size(), at_hold, "a stream on hold sends nothing");
  p.b.stream->describe(config(p.rb, kUlaw), p.w.now);
  p.a.receive(rtp(0, 86, 5000 + 79 * 160, 12), p.ra);
  check::ok(p.b.sent.size() == at_hold + 1 && continuous(p.b.sent, at_hold),
            "a stream continues after a hold without a gap in its numbers");
  // A flood is policed.
  const uint64_t had = p.a.counters->packets_received;
  for (int i = 0; i < 5000; ++i) {
    p.a.receive(rtp(0, static_cast<uint16_t>(87 + i), 5000 + static_cast<uint32_t>(80 + i) * 160, 12), p.ra);
    if (i % 5 == 0) p.w.run(1);
  }
  check::within(static_cast<double>(p.a.counters->packets_received - had), 150, 400,
                "a flood at a hundred times the rate is policed to three times the rate and half a second's burst");
  check::ok(p.a.counters->policed > 4500, "policed packets are counted");
}

void converting() {
  Pair p(kUlaw, kAlaw);
  auto in = rtp(0, 1, 0, 1);
  for (size_t i = 0; i < 160; ++i) in[kRtpHeader + i] = static_cast<uint8_t>(i);
  p.a.receive(in, p.ra);
  bool same = p.b.sent.size() == 1 && (p.b.sent[0][1] & 0x7f) == 8;
  for (size_t i = 0; same && i < 160; ++i) same = p.b.sent[0][kRtpHeader + i] == g711().ulaw_to_alaw[i];
  check::ok(same, "PCMU is converted to PCMA by table");
  std::vector<uint8_t> with_extras(12 + 8 + 8 + 160 + 4, 0x11);
  write_rtp_header(with_extras.data(), 0, false, 2, 160, 1);
  with_extras[0] = 0xb2;
  put16(with_extras.data() + 22, 1);
  with_extras.back() = 4;
  p.a.receive(with_extras, p.ra);
  check::ok(p.b.sent.size() == 2 && p.b.sent[1].size() == 172 && p.b.sent[1][0] == 0x80,
            "the relay removes CSRCs, extension and padding");
}

void passing_keys() {
  Pair p(kUlaw, payload(0, "PCMU", CodecId::pcmu, 8000));
  uint32_t ts = 1000;
  uint16_t seq = 1;
  for (int i = 0; i < 10; ++i, ts += 160) {
    p.a.receive(rtp(0, seq++, ts, 1), p.ra);
    p.w.run(20);
  }
  for (int i = 1; i <= 8; ++i) {
    auto k = rtp(101, seq++, ts, 1, 4);
    const TelephoneEvent e{7, i >= 6, 10, static_cast<uint16_t>(std::min(i, 6) * 160)};
    write_telephone_event(k.data() + kRtpHeader, e);
    p.a.receive(k, p.ra);
    p.w.run(20);
  }
  check::equal(p.w.count(EventType::key), 1, "a key with three end packets is reported once");
  check::ok(p.b.sent.size() == 18 && continuous(p.b.sent), "packets of a key are relayed within the stream");
  check::equal(ts_of(p.b.sent[17]) - ts_of(p.b.sent[9]), 160u,
               "packets of a relayed key have the timestamp of its start");
  p.a.stream->relay_keys(false);
  auto k = rtp(101, seq++, ts + 5000, 1, 4);
  write_telephone_event(k.data() + kRtpHeader, {8, true, 10, 800});
  p.a.receive(k, p.ra);
  check::ok(p.b.sent.size() == 18 && p.w.count(EventType::key) == 1,
            "a key is reported and not relayed when relaying of keys is off");
  p.a.receive(rtp(0, seq++, ts + 5160, 1), p.ra);
  check::ok(continuous(p.b.sent) && p.b.sent.size() == 19, "a key that is not relayed leaves no gap in the numbers");
  p.b.stream->send_keys({"s", "1#", 100, 80}, p.w.now);
  const size_t from = p.b.sent.size();
  p.w.run(800);
  int ends = 0;
  std::vector<uint32_t> stamps;
  for (size_t i = from; i < p.b.sent.size(); ++i) {
    TelephoneEvent e;
    parse_telephone_event(p.b.sent[i].data() + kRtpHeader, 4, e);
    if (e.end) ++ends;
    if (stamps.empty() || stamps.back() != ts_of(p.b.sent[i])) stamps.push_back(ts_of(p.b.sent[i]));
  }
  check::ok(ends == 6 && stamps.size() == 2, "each of two sent keys has one timestamp and three ends");
  check::equal(p.w.count(EventType::digits_sent), 1, "the end of sent keys is reported once");
  p.a.stream->relay_keys(true);
  p.b.stream->send_keys({"t", "1", 100, 80}, p.w.now);
  p.w.run(40);
  const size_t meanwhile = p.b.sent.size();
  ts += 50'000;
  for (int i = 1; i <= 6; ++i) {
    auto pressed = rtp(101, seq++, ts, 1, 4);
    write_telephone_event(pressed.data() + kRtpHeader, {9, i >= 4, 10, static_cast<uint16_t>(std::min(i, 4) * 160)});
    p.a.receive(pressed, p.ra);
    p.w.run(20);
  }
  p.w.run(1000);
  std::string order;
  for (size_t i = meanwhile; i < p.b.sent.size(); ++i) {
    TelephoneEvent e;
    parse_telephone_event(p.b.sent[i].data() + kRtpHeader, 4, e);
    const char digit = static_cast<char>('0' + e.event);
    if (order.empty() || order.back() != digit) order += digit;
  }
  check::ok(order == "19" && continuous(p.b.sent, meanwhile),
            "a key received while another is sent follows it");
}

/** Keys that are held for three seconds, during which the phone sends no audio. */
void long_keys() {
  for (const auto& to : {kUlaw, kG722Audio}) {
    const std::string name = std::string(to.name) + ": ";
    Pair p(kUlaw, to);
    uint32_t ts = 1000;
    uint16_t seq = 1;
    const auto audio = [&](int packets) {
      for (int i = 0; i < packets; ++i, ts += 160) {
        p.a.receive(rtp(0, seq++, ts, 1), p.ra);
        p.w.run(20);
      }
    };
    const auto key = [&] {
      for (int i = 1; i <= 150; ++i) {
        auto k = rtp(101, seq++, ts, 1, 4);
        write_telephone_event(k.data() + kRtpHeader, {7, i == 150, 10, static_cast<uint16_t>(i * 160)});
        p.a.receive(k, p.ra);
        p.w.run(20);
      }
      ts += 24'000;
    };
    /** Returns the timestamps of the packets since `from`, each once for packets in a row that share it. */
    const auto stamps = [&](size_t from, bool keys) {
      std::vector<uint32_t> all;
      for (size_t i = from; i < p.b.sent.size(); ++i)
        if (((p.b.sent[i][1] & 0x7f) == 101) == keys && (all.empty() || all.back() != ts_of(p.b.sent[i])))
          all.push_back(ts_of(p.b.sent[i]));
      return all;
    };
    const auto check_key = [&](const std::string& which) {
      const size_t from = p.b.sent.size();
      key();
      audio(10);
      const auto keys = stamps(from, true);
      check::equal(keys.size(), size_t{1}, name + which + " keeps its timestamp");
      const size_t after = stamps(from, false).size();
      // Audio that is transcoded may end after the key has begun, and passes a jitter buffer after it.
      if (check::ok(after >= 5, name + "audio follows " + which))
        check::within(static_cast<int32_t>(stamps(from, false)[after - 5] - keys[0]), 24'000, 24'000 + 10 * 160,
                      name + "the clock advances by the length of " + which);
    };
    check_key("a long key at the start");
    check_key("a long key after audio");
    p.w.run(2000);
    ts += 16'000;
    check_key("a long key after a pause");
    check::ok(continuous(p.b.sent), name + "long keys leave no gap in the numbers");
  }
}

/** A key as its tones and as an event of the same stream, between which the network holds the packets up. */
void held_up_keys() {
  World w;
  TestLeg leg(w, 1, {});
  const Address from = address("192.0.2.1", 4000);
  leg.stream->describe(config(from, kUlaw), w.now);
  leg.stream->detect(true, false, false, w.now);
  const auto encoder = find_codec(CodecId::pcmu)->encoder({});
  uint32_t ts = 1000;
  uint16_t seq = 1;
  std::string told;
  const auto tell = [&] {
    Event e;
    w.events.begin_read();
    while (w.events.pop(e))
      if (e.type == EventType::key) told += e.text + (e.id == "inband" ? "t" : "e");
    return told;
  };
  const auto audio = [&](bool tones, int packets) {
    for (int i = 0; i < packets; ++i, ts += 160) {
      int16_t pcm[160];
      for (int n = 0; n < 160; ++n) {
        const double at = 2 * M_PI * (i * 160 + n) / 8000;
        pcm[n] = tones ? static_cast<int16_t>(6000 * (std::sin(770 * at) + std::sin(1336 * at))) : int16_t{0};
      }
      auto p = rtp(0, seq++, ts, 7);
      encoder->encode(pcm, 160, p.data() + kRtpHeader, 160);
      leg.receive(p, from);
      w.run(20);
    }
  };
  const auto event = [&](int from_step, int to_step) {
    for (int i = from_step; i <= to_step; ++i) {
      auto p = rtp(101, seq++, ts, 7, 4);
      write_telephone_event(p.data() + kRtpHeader, {5, i > 6, 10, static_cast<uint16_t>(std::min(i, 6) * 160)});
      leg.receive(p, from);
      w.run(20);
    }
  };
  audio(false, 10);
  audio(true, 6);
  audio(false, 2);
  w.run(2000);
  event(1, 9);
  ts += 960;
  check::ok(tell() == "5t", "tones and their event are one key though two seconds pass between them on the way");
  event(1, 3);
  w.run(2000);
  event(4, 9);
  ts += 960;
  check::ok(tell() == "5t5e", "an event whose packets are held up for two seconds in its middle is one key");
  event(1, 9);
  ts += 960;
  event(1, 9);
  check::ok(tell() == "5t5e5e5e", "the same key pressed again counts each time");
}

/** Keys in the media and by INFO. A peer that sends both sends either first. */
void keys_by_info() {
  World w;
  TestLeg leg(w, 1, {});
  const Address from = address("192.0.2.1", 4000);
  leg.stream->describe(config(from, kUlaw), w.now);
  uint32_t ts = 1000;
  uint16_t seq = 1;
  const auto event = [&](uint8_t key) {
    for (int i = 1; i <= 9; ++i) {
      auto p = rtp(101, seq++, ts, 7, 4);
      write_telephone_event(p.data() + kRtpHeader, {key, i > 6, 10, static_cast<uint16_t>(std::min(i, 6) * 160)});
      leg.receive(p, from);
      w.run(20);
    }
    ts += 8000;
  };
  const auto told = [&] {
    std::string keys;
    Event e;
    w.events.begin_read();
    while (w.events.pop(e))
      if (e.type == EventType::key) keys += e.text + (e.id == "info" ? "i" : "e") + (e.flag ? "-" : "");
    return keys;
  };
  leg.stream->hear_key('5', w.now);
  event(5);
  check::ok(told() == "5i5e-", "an event is the echo of an INFO before it");
  event(5);
  leg.stream->hear_key('5', w.now);
  check::ok(told() == "5e", "an INFO is the echo of an event before it");
  leg.stream->hear_key('5', w.now);
  leg.stream->hear_key('5', w.now);
  event(6);
  check::ok(told() == "5i5i6e", "a key that is pressed twice counts twice");
  w.run(3000);
  event(5);
  check::ok(told() == "5e", "a key pressed two seconds after an INFO is no echo");
}

/** What a tap of sent audio tells of the time at which it was sent. */
void tapped_pauses() {
  Pair p(kUlaw, kUlaw);
  p.b.stream->tap({"t", true, 8000, 20, false}, p.w.now);
  uint32_t ts = 1000;
  uint16_t seq = 1;
  std::vector<int64_t> at;
  const auto relays = [&](int packets, uint64_t apart_ms) {
    for (int i = 0; i < packets; ++i, ts += 160) {
      p.a.receive(rtp(0, seq++, ts, 1), p.ra);
      p.w.run(apart_ms);
    }
    at.clear();
    Event e;
    p.w.events.begin_read();
    while (p.w.events.pop(e))
      if (e.type == EventType::tap) at.push_back(e.a);
    return at.size() == static_cast<size_t>(packets);
  };
  p.w.run(10'000);
  check::ok(relays(10, 20) && at.front() == 10'000 && at.back() == 10'180, "the time before the first packet counts");
  p.w.run(3000);
  ts += 24'000;
  check::ok(relays(10, 20) && at.front() == 13'200 && at.back() == 13'380, "a pause counts");
  p.w.run(1400);
  check::ok(relays(70, 0) && at.front() == 13'400 && at.back() == 14'780, "packets that were held up are no pause");
  check::ok(relays(10, 20) && at.front() == 14'800, "nor is what follows them");
  ts += 6000;
  check::ok(relays(10, 20) && at.front() == 15'000, "nor a clock that jumps");
  for (int i = 0; i < 10; ++i) {
    p.w.run(30);
    ts += 240;
    relays(1, 20);
  }
  check::equal(at.front(), 15'680, "short pauses add up");
}

void transcoding() {
  Pair p(kUlaw, payload(9, "G722", CodecId::g722, 8000));
  for (int i = 0; i < 100; ++i) {
    p.a.receive(rtp(0, static_cast<uint16_t>(i), static_cast<uint32_t>(i) * 160, 1), p.ra);
    p.b.receive(rtp(9, static_cast<uint16_t>(i), static_cast<uint32_t>(i) * 160, 2), p.rb);
    p.w.run(20);
  }
  check::ok(p.b.sent.size() >= 95 && continuous(p.b.sent) && p.b.sent[0].size() == 172 && (p.b.sent[0][1] & 0x7f) == 9,
            "PCMU is transcoded to G722 in frames of 20 ms");
  check::ok(p.a.sent.size() >= 95 && continuous(p.a.sent), "G722 is transcoded to PCMU");
  bool steady = true;
  for (size_t i = 1; i < p.b.sent.size(); ++i)
    if (ts_of(p.b.sent[i]) - ts_of(p.b.sent[i - 1]) != 160) steady = false;
  check::ok(steady, "the RTP clock of G722 runs at 8000 Hz");
  const size_t n = p.b.sent.size();
  p.w.run(2000);
  check::ok(p.b.sent.size() < n + 12, "a transcoding stream stops sending when no packets arrive");
}

void late_path() {
  Piece piece;
  piece.kind = Piece::Kind::tone;
  piece.hz[0] = 440;
  piece.tones = 1;
  piece.on_ms = piece.total_ms = 400;
  const Address remote = address("192.0.2.1", 4000);
  for (const bool browser : {true, false}) {
    World w;
    TestLeg leg(w, 1, {});
    leg.stream->take_raw(browser);
    StreamConfig pathless = config(Address{}, kUlaw);
    pathless.may_send = pathless.may_receive = false;
    leg.stream->describe(pathless, w.now);
    leg.stream->play(std::make_unique<Player>("x", std::vector<Piece>{piece}, 1), w.now);
    w.run(3000);
    leg.stream->describe(config(remote, kUlaw), w.now);
    w.run(1000);
    if (browser)
      check::within(static_cast<double>(leg.sent.size()), 20, 21,
                    "the first prompt of a browser's leg waits for its path");
    else
      check::ok(leg.sent.empty(), "the first prompt of another leg does not wait");
    check::equal(w.count(EventType::play_ended), 1, "the end of a first prompt is reported once");
  }
  World w;
  TestLeg leg(w, 1, {});
  leg.stream->take_raw(true);
  leg.stream->play(std::make_unique<Player>("x", std::vector<Piece>{piece}, 1), w.now);
  w.run(11'000);
  check::equal(w.count(EventType::play_ended), 1, "a first prompt ends even if its path never comes");
}

void reporting() {
  Pair p(kUlaw, kUlaw);
  for (int i = 0; i < 1000; ++i) {
    if (i % 10) p.a.receive(rtp(0, static_cast<uint16_t>(i), static_cast<uint32_t>(i) * 160, 11), p.ra);
    p.w.run(20);
  }
  check::ok(p.a.reports.size() >= 2 && p.b.reports.size() >= 2, "each leg sends reports about every five seconds");
  PeerReport r;
  check::ok(parse_rtcp(p.a.reports.back().data(), p.a.reports.back().size(), 11, r) && r.block && !r.sender_info &&
                r.fraction_lost >= 20 && r.fraction_lost <= 32,
            "a leg that only receives sends a receiver report with its loss");
  check::ok(parse_rtcp(p.b.reports.back().data(), p.b.reports.back().size(), 0, r) && r.sender_info,
            "a leg that sends sends a sender report");
  p.b.stream->close(p.w.now);
  check::ok(parse_rtcp(p.b.reports.back().data(), p.b.reports.back().size(), 0, r) && r.bye,
            "a leg sends BYE when it closes");
  p.w.count(EventType::silent);
  p.w.run(15'000);
  check::equal(p.w.count(EventType::silent), 1, "ten seconds of silence are reported, but not of a closed stream");
  Pair paused(kUlaw, kUlaw);
  StreamConfig c = config(paused.ra, kUlaw);
  c.receive.push_back(payload(13, "CN", CodecId::other, 8000, PayloadKind::comfort_noise));
  paused.a.stream->describe(c, paused.w.now);
  paused.a.receive(rtp(13, 1, 0, 5, 1), paused.ra);
  OurReport theirs;
  theirs.ssrc = 5;
  uint8_t report[256];
  const size_t n = write_rtcp(report, theirs, "peer");
  const auto silences = [&](bool reports) {
    paused.w.count(EventType::silent);
    for (int second = 0; second < 15; ++second) {
      if (reports && second % 5 == 0) paused.a.stream->on_rtcp(report, n, paused.ra, paused.w.now, false);
      paused.w.run(1000);
    }
    int of_a = 0;
    Event e;
    paused.w.events.begin_read();
    while (paused.w.events.pop(e))
      if (e.type == EventType::silent && e.stream == 1) ++of_a;
    return of_a;
  };
  check::equal(silences(true), 0, "a peer that announced a pause is not silent while its reports arrive");
  check::ok(silences(false) > 0, "a paused peer without reports is silent");
}

}  // namespace

/** The peer's ptime is what it wants to receive. It may send shorter packets, also from the middle of a call on. */
void shorter_than_asked() {
  Pair p(kUlaw, kUlaw);
  StreamConfig asks = config(p.ra, kUlaw);
  asks.ptime_ms = 60;
  p.a.stream->describe(asks, p.w.now);
  uint16_t seq = 1;
  for (const size_t bytes : {480, 160, 80}) {
    for (size_t i = 0; i < 8000 / bytes * 5; ++i) {
      p.a.receive(rtp(0, seq, seq * static_cast<uint32_t>(bytes), 11, bytes), p.ra);
      ++seq;
      p.w.run(bytes / 8);
    }
  }
  check::equal(uint64_t{p.a.counters->policed}, uint64_t{0}, "a peer that asks for 60 ms may send packets of 10 ms");
}

/** A peer that takes shorter packets than the other one sends, or longer ones. */
void packing_anew() {
  Pair p(kUlaw, kAlaw);
  StreamConfig most = config(p.rb, kAlaw);
  most.ptime_ms = most.max_ptime_ms = 10;
  p.b.stream->describe(most, p.w.now);
  uint16_t seq = 1;
  const auto speak = [&](int packets, size_t bytes) {
    p.b.sent.clear();
    for (int i = 0; i < packets; ++i) {
      p.a.receive(rtp(0, seq, seq * static_cast<uint32_t>(bytes), 11, bytes), p.ra);
      ++seq;
      p.w.run(bytes / 8);
    }
  };
  speak(50, 160);
  bool fits = true;
  for (const auto& packet : p.b.sent) fits &= packet.size() == kRtpHeader + 80;
  check::ok(fits && p.b.sent.size() > 80 && continuous(p.b.sent), "a peer of 10 ms gets packets of 10 ms, not of 20");
  most.ptime_ms = most.max_ptime_ms = 20;
  p.b.stream->describe(most, p.w.now);
  speak(50, 160);
  check::ok(p.b.sent.size() >= 50 && p.b.sent.back().size() == kRtpHeader + 160, "packets that fit are relayed");
  const uint64_t before = p.b.counters->packets_sent;
  p.a.receive(rtp(0, seq, seq * 160u, 11), p.ra);
  check::ok(p.b.counters->packets_sent == before + 1, "at once");
}

void stream_tests() {
  relaying();
  packing_anew();
  shorter_than_asked();
  converting();
  passing_keys();
  long_keys();
  held_up_keys();
  keys_by_info();
  tapped_pauses();
  transcoding();
  late_path();
  reporting();
}
