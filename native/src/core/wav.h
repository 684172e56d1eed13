// A WAV file that is playable at every moment. Every fourth append updates its header.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace media {

class WavFile {
 public:
  static constexpr uint64_t kHeader = 44;  // bytes before the audio

  ~WavFile();
  /** Creates the file. Returns 0 or an errno. */
  int open(const std::string& path, int channels, int rate_hz);
  /** Appends interleaved samples. Returns 0 or an errno; after an error the file keeps its previous length. */
  int append(const int16_t* samples, size_t count);
  /** Trims the file to the samples [from, to) of each channel. */
  int keep(uint64_t from, uint64_t to);
  uint64_t frames() const { return data_bytes_ / (2u * static_cast<unsigned>(channels_)); }
  uint64_t bytes() const { return kHeader + data_bytes_; }
  /** Reads samples from the file, for trimming. */
  size_t read(uint64_t frame, int16_t* out, size_t count) const;
  /** Updates the header. Returns the SHA-256 digest of the whole file in hexadecimal. */
  std::string sha256();
  int close();

 private:
  int write_header();
  int fd_ = -1, channels_ = 1, rate_hz_ = 8000;
  uint64_t data_bytes_ = 0;
  unsigned pieces_ = 0;
};

}  // namespace media
