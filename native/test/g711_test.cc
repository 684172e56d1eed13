// G.711 against the Recommendation: its tables 1a to 2b as formulas, for all code words and all samples.
#include "../src/codec/g711.h"

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "../src/codec/codec.h"
#include "check.h"

using namespace media;

namespace {

/** The positive half of a law: the decoder's output values and the decision values between them, from zero up. */
struct Law {
  std::vector<int> values, decisions;
};

/** Tables 1a and 1b: 13-bit samples. Steps of 2 up to 64, then segments of 16 steps, each step twice as large. */
Law a_law() {
  Law law;
  int from = 0;
  for (int segment = 0; segment < 8; ++segment) {
    const int step = segment < 2 ? 2 : 1 << segment;
    for (int i = 0; i < 16; ++i, from += step) {
      law.decisions.push_back(from);
      law.values.push_back(from + step / 2);
    }
  }
  return law;
}

/** Tables 2a and 2b: 14-bit samples. The value zero, then steps that double from 2 on, between odd decision values. */
Law u_law() {
  Law law;
  law.values.push_back(0);
  law.decisions.push_back(0);
  int from = 1;
  for (int segment = 0; segment < 8; ++segment) {
    const int step = 2 << segment;
    for (int i = segment ? 0 : 1; i < 16; ++i, from += step) {
      law.decisions.push_back(from);
      law.values.push_back(from + step / 2);
    }
  }
  return law;
}

size_t interval(const Law& law, int magnitude) {
  size_t i = 0;
  while (i + 1 < law.decisions.size() && magnitude >= law.decisions[i + 1]) ++i;
  return i;
}

/** Decodes frames of any length, including the rest that the unrolled loop of four leaves over. */
void decodes(CodecId id, const std::array<int16_t, 256>& table) {
  const Codec& codec = *find_codec(id);
  std::vector<uint8_t> codes;
  for (int i = 0; i < 512; ++i) codes.push_back(static_cast<uint8_t>(i * 37));
  int wrong = 0;
  for (int bytes = 0; bytes <= 480; ++bytes) {
    std::vector<int16_t> pcm(static_cast<size_t>(bytes) + 1, 12345);
    wrong += codec.decoder(0)->decode(codes.data(), bytes, pcm.data(), bytes) != bytes || pcm.back() != 12345;
    for (size_t i = 0; i + 1 < pcm.size(); ++i) wrong += pcm[i] != table[codes[i]];
  }
  check::equal(wrong, 0,
               std::string(codec.name) + " decodes frames of 0 to 480 samples by the table, without writing past them");
}

}  // namespace

void g711_tests() {
  const auto& t = g711();
  const Law a = a_law(), u = u_law();
  check::ok(a.values.size() == 128 && a.values.back() == 4032, "table 1a ends at 4032");
  check::ok(u.values.size() == 128 && u.values.back() == 8031, "table 2a ends at 8031");
  int wrong_a = 0, wrong_u = 0;
  for (size_t n = 0; n < 128; ++n) {
    // The first bit is the sign, 1 for positive. A-law inverts the even bits, µ-law all bits of the magnitude.
    const auto code_a = static_cast<uint8_t>(n ^ 0x55), code_u = static_cast<uint8_t>(0x7f - n);
    if (t.from_alaw[code_a | 0x80] != a.values[n] * 8) ++wrong_a;
    if (t.from_alaw[code_a] != -a.values[n] * 8) ++wrong_a;
    if (t.from_ulaw[code_u | 0x80] != u.values[n] * 4) ++wrong_u;
    if (t.from_ulaw[code_u] != -u.values[n] * 4) ++wrong_u;
  }
  check::equal(wrong_a, 0, "all 256 A-law code words have the value of the Recommendation");
  check::equal(wrong_u, 0, "all 256 µ-law code words have the value of the Recommendation");
  int encoded_a = 0, encoded_u = 0;
  for (int s = 0; s <= 32767; ++s) {
    const auto code_a = t.to_alaw[static_cast<uint16_t>(s)], code_u = t.to_ulaw[static_cast<uint16_t>(s)];
    if (code_a != ((interval(a, s / 8) ^ 0x55) | 0x80)) ++encoded_a;
    if (code_u != ((0x7f - interval(u, s / 4)) | 0x80)) ++encoded_u;
  }
  check::equal(encoded_a, 0, "every sample from zero up falls into its A-law interval");
  check::equal(encoded_u, 0, "every sample from zero up falls into its µ-law interval");
  int unlike_mirror = 0;
  for (int s = -32768; s < 0; ++s)
    if (t.to_ulaw[static_cast<uint16_t>(s)] != (t.to_ulaw[static_cast<uint16_t>(~s)] & 0x7f)) ++unlike_mirror;
  check::equal(unlike_mirror, 0, "a sample below zero takes the µ-law code of its complement, with the other sign");
  int farther = 0;
  for (const int s : {-16252, -8060, -3964, -1916, -892}) {
    const int taken = std::abs(t.from_ulaw[t.to_ulaw[static_cast<uint16_t>(s)]] - s);
    for (const int16_t other : t.from_ulaw)
      if (std::abs(other - s) < taken) {
        ++farther;
        break;
      }
  }
  check::equal(farther, 0, "a sample below zero on the border of two segments takes the nearer µ-law code");
  int unlike = 0;
  for (int code = 0; code < 256; ++code) {
    const auto c = static_cast<uint8_t>(code);
    if (t.to_alaw[static_cast<uint16_t>(t.from_alaw[c])] != c) ++unlike;
    // µ-law encodes negative zero as positive zero.
    if (t.to_ulaw[static_cast<uint16_t>(t.from_ulaw[c])] != c && c != 0x7f) ++unlike;
  }
  check::equal(unlike, 0, "encoding a decoded code word returns the same code word");
  decodes(CodecId::pcmu, t.from_ulaw);
  decodes(CodecId::pcma, t.from_alaw);
}
