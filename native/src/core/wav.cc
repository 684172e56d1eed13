#include "wav.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace media {

static int write_all(int fd, const void* data, size_t n, uint64_t at) {
  const auto* p = static_cast<const uint8_t*>(data);
  while (n > 0) {
    const ssize_t done = pwrite(fd, p, n, static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : EIO;
    p += done;
    at += static_cast<uint64_t>(done);
    n -= static_cast<size_t>(done);
  }
  return 0;
}

WavFile::~WavFile() {
  close();
}

int WavFile::open(const std::string& path, int channels, int rate_hz) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
  if (fd_ < 0) return errno;
  channels_ = channels;
  rate_hz_ = rate_hz;
  return write_header();
}

int WavFile::write_header() {
  const auto le = [](uint8_t* p, uint64_t v, int n) {
    for (int i = 0; i < n; ++i) p[i] = static_cast<uint8_t>(v >> (8 * i));
  };
  const uint64_t data = std::min<uint64_t>(data_bytes_, 0xffffffffu - 36);
  uint8_t h[kHeader];
  std::memcpy(h, "RIFF", 4);
  le(h + 4, data + 36, 4);
  std::memcpy(h + 8, "WAVEfmt ", 8);
  le(h + 16, 16, 4);
  le(h + 20, 1, 2);
  le(h + 22, static_cast<uint64_t>(channels_), 2);
  le(h + 24, static_cast<uint64_t>(rate_hz_), 4);
  le(h + 28, static_cast<uint64_t>(rate_hz_ * channels_ * 2), 4);
  le(h + 32, static_cast<uint64_t>(channels_ * 2), 2);
  le(h + 34, 16, 2);
  std::memcpy(h + 36, "data", 4);
  le(h + 40, data, 4);
  return write_all(fd_, h, kHeader, 0);
}

int WavFile::append(const int16_t* samples, size_t count) {
  const int error = write_all(fd_, samples, count * 2, kHeader + data_bytes_);
  if (error) {
    // The header is still correct. Cut off partly written samples if possible.
    if (ftruncate(fd_, static_cast<off_t>(kHeader + data_bytes_)) != 0) return error;
    return error;
  }
  data_bytes_ += count * 2;
  return ++pieces_ % 4 ? 0 : write_header();
}

size_t WavFile::read(uint64_t frame, int16_t* out, size_t count) const {
  const ssize_t n = pread(fd_, out, count * 2, static_cast<off_t>(kHeader + frame * 2u * static_cast<unsigned>(channels_)));
  return n < 0 ? 0 : static_cast<size_t>(n) / 2;
}

int WavFile::keep(uint64_t from, uint64_t to) {
  const uint64_t unit = 2u * static_cast<unsigned>(channels_);
  std::vector<uint8_t> block(256 * 1024);
  if (from > 0) {
    for (uint64_t at = from * unit, end = to * unit; at < end;) {
      const ssize_t n =
          pread(fd_, block.data(), std::min<uint64_t>(block.size(), end - at), static_cast<off_t>(kHeader + at));
      if (n <= 0) return n < 0 ? errno : EIO;
      if (const int error = write_all(fd_, block.data(), static_cast<size_t>(n), kHeader + at - from * unit)) return error;
      at += static_cast<uint64_t>(n);
    }
  }
  data_bytes_ = (to - from) * unit;
  if (ftruncate(fd_, static_cast<off_t>(kHeader + data_bytes_)) != 0) return errno;
  return write_header();
}

std::string WavFile::sha256() {
  if (write_header() != 0) return "";
  EVP_MD_CTX* md = EVP_MD_CTX_new();
  EVP_DigestInit_ex(md, EVP_sha256(), nullptr);
  std::vector<uint8_t> block(256 * 1024);
  for (uint64_t at = 0;;) {
    const ssize_t n = pread(fd_, block.data(), block.size(), static_cast<off_t>(at));
    if (n <= 0) break;
    EVP_DigestUpdate(md, block.data(), static_cast<size_t>(n));
    at += static_cast<uint64_t>(n);
    if (at >= bytes()) break;
  }
  uint8_t digest[32];
  unsigned size = 0;
  EVP_DigestFinal_ex(md, digest, &size);
  EVP_MD_CTX_free(md);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += "0123456789abcdef"[digest[i] >> 4];
    hex += "0123456789abcdef"[digest[i] & 15];
  }
  return hex;
}

int WavFile::close() {
  if (fd_ < 0) return 0;
  const int fd = fd_;
  fd_ = -1;
  return ::close(fd) == 0 ? 0 : errno;
}

}  // namespace media
