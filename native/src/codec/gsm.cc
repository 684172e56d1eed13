// GSM 06.10 (spandsp).
#include "gsm.h"

#include <spandsp.h>

#include <memory>

namespace media {

std::vector<int16_t> decode_gsm(const uint8_t* bytes, size_t n, GsmPacking packing) {
  const bool wav = packing == GsmPacking::wav49;
  const size_t block = wav ? 65 : 33, samples = wav ? 320 : 160;
  const std::unique_ptr<gsm0610_state_t, int (*)(gsm0610_state_t*)> state(
      gsm0610_init(nullptr, wav ? GSM0610_PACKING_WAV49 : GSM0610_PACKING_VOIP), gsm0610_free);
  std::vector<int16_t> out;
  if (!state) return out;
  out.resize(n / block * samples);
  for (size_t i = 0; i < n / block; ++i)
    gsm0610_decode(state.get(), &out[i * samples], bytes + i * block, static_cast<int>(block));
  return out;
}

}  // namespace media
