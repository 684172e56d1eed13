// Synthesises speech for tests with espeak-ng.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "../src/core/resample.h"

namespace speech {

/** Returns six seconds of speech at 8 kHz. */
inline std::vector<int16_t> spoken(const char* voice, const char* text) {
  const std::string command = std::string("espeak-ng -v ") + voice + " -s 150 --stdout '" + text + "'";
  FILE* f = popen(command.c_str(), "r");
  std::vector<uint8_t> wav;
  uint8_t block[4096];
  for (size_t n; f && (n = fread(block, 1, sizeof block, f)) > 0;) wav.insert(wav.end(), block, block + n);
  if (f) pclose(f);
  if (wav.size() < 44) return {};
  std::vector<int16_t> pcm((wav.size() - 44) / 2);
  std::memcpy(pcm.data(), wav.data() + 44, pcm.size() * 2);
  auto out = media::resample_all(pcm.data(), pcm.size(), 22'050, 8000);
  out.resize(6 * 8000);
  return out;
}

inline std::vector<int16_t> english() {
  return spoken("en", "Good morning, this is the support desk. May I have your account number, please?");
}

}  // namespace speech
