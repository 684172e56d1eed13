#include "detect.h"

#include <spandsp.h>

#include <algorithm>
#include <cmath>

namespace media {

bool VoiceActivity::take(const int16_t* pcm, int samples, int rate_hz) {
  double energy = 0;
  for (int i = 0; i < samples; ++i) energy += static_cast<double>(pcm[i]) * pcm[i];
  const double level = std::sqrt(energy / std::max(1, samples));
  const auto ms = static_cast<uint32_t>(samples * 1000 / rate_hz);
  // The floor falls at once and rises slowly, so that it follows the noise and not the speech.
  floor_ = level < floor_ ? std::max(20.0, level) : std::min(floor_ * 1.003 + 0.05, 1500.0);
  const bool loud = level > std::max(160.0, floor_ * 3);
  loud_ms_ = loud ? loud_ms_ + ms : 0;
  quiet_ms_ = loud ? 0 : quiet_ms_ + ms;
  state_ms_ += ms;
  const bool next = speaking_ ? quiet_ms_ < 240 : loud_ms_ >= 60;
  if (next == speaking_) return false;
  const uint32_t back = speaking_ ? quiet_ms_ : loud_ms_;
  lasted_ms_ = state_ms_ > back ? state_ms_ - back : 0;
  state_ms_ = back;
  speaking_ = next;
  return true;
}

struct Detector::State {
  dtmf_rx_state_t* dtmf = nullptr;
  modem_connect_tones_rx_state_t* cng = nullptr;
  modem_connect_tones_rx_state_t* ced = nullptr;
  ~State() {
    if (dtmf) dtmf_rx_free(dtmf);
    if (cng) modem_connect_tones_rx_free(cng);
    if (ced) modem_connect_tones_rx_free(ced);
  }
};

Detector::Detector() : state_(std::make_unique<State>()) {}
Detector::~Detector() = default;

int Detector::keys(const int16_t* pcm, int samples, char* out, int room) {
  if (!state_->dtmf) state_->dtmf = dtmf_rx_init(nullptr, nullptr, nullptr);
  dtmf_rx(state_->dtmf, pcm, samples);
  return static_cast<int>(dtmf_rx_get(state_->dtmf, out, room));
}

int Detector::fax(const int16_t* pcm, int samples) {
  if (!state_->cng) {
    state_->cng = modem_connect_tones_rx_init(nullptr, MODEM_CONNECT_TONES_FAX_CNG, nullptr, nullptr);
    state_->ced = modem_connect_tones_rx_init(nullptr, MODEM_CONNECT_TONES_FAX_CED, nullptr, nullptr);
  }
  modem_connect_tones_rx(state_->cng, pcm, samples);
  modem_connect_tones_rx(state_->ced, pcm, samples);
  if (modem_connect_tones_rx_get(state_->cng) == MODEM_CONNECT_TONES_FAX_CNG) return 1;
  if (modem_connect_tones_rx_get(state_->ced) == MODEM_CONNECT_TONES_FAX_CED) return 2;
  return 0;
}

}  // namespace media
