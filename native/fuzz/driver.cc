// Runs a fuzz target without libFuzzer, which Debian's g++ lacks: first every file of the corpus, then seeded mutations
// of them. On a finding the sanitizer aborts the program; --last holds the last input.
//   fuzz_rtp --corpus DIR --count N --seed N [--file CRASH]
#include <dirent.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

using Bytes = std::vector<uint8_t>;

static uint64_t state;
static uint32_t next(uint32_t below) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return below ? static_cast<uint32_t>(state >> 33) % below : 0;
}

static Bytes read_file(const std::string& name) {
  std::ifstream f(name, std::ios::binary);
  return Bytes((std::istreambuf_iterator<char>(f)), {});
}

static void mutate(Bytes& b) {
  static const uint8_t kSpecial[] = {0, 1, 0x7f, 0x80, 0x8f, 0x90, 0xa0, 0xb0, 0xff, 200, 201, 202, 203};
  for (uint32_t n = 1 + next(6); n > 0; --n) {
    const auto size = static_cast<uint32_t>(b.size());
    switch (next(6)) {
      case 0:
        if (size) b[next(size)] ^= static_cast<uint8_t>(1u << next(8));
        break;
      case 1:
        if (size) b[next(size)] = kSpecial[next(sizeof kSpecial)];
        break;
      case 2:
        b.resize(next(size + 1));
        break;
      case 3:
        for (uint32_t more = next(64); more > 0; --more) b.push_back(static_cast<uint8_t>(next(256)));
        break;
      case 4:
        if (size > 4) {
          const uint32_t at = next(size - 2);
          b[at] = static_cast<uint8_t>(next(256));
          b[at + 1] = static_cast<uint8_t>(next(256));
        }
        break;
      default:
        if (size) b.insert(b.begin() + next(size), b.begin(), b.begin() + next(size));
        break;
    }
    if (b.size() > 2000) b.resize(2000);
  }
}

int main(int argc, char** argv) {
  std::map<std::string, std::string> o{{"--count", "100000"}, {"--seed", "1"}, {"--last", "/dev/null"}};
  for (int i = 1; i + 1 < argc; i += 2) o[argv[i]] = argv[i + 1];
  state = std::strtoull(o["--seed"].c_str(), nullptr, 10) * 2654435761u + 1;
  std::vector<Bytes> corpus{Bytes{}};
  if (!o["--file"].empty()) {
    const Bytes b = read_file(o["--file"]);
    LLVMFuzzerTestOneInput(b.data(), b.size());
    return 0;
  }
  if (DIR* d = opendir(o["--corpus"].c_str())) {
    while (const dirent* e = readdir(d))
      if (e->d_name[0] != '.') corpus.push_back(read_file(o["--corpus"] + "/" + e->d_name));
    closedir(d);
  }
  const auto attempt = [&, keep = o["--last"] != "/dev/null"](const Bytes& b) {
    if (keep) {
      std::ofstream f(o["--last"], std::ios::binary | std::ios::trunc);
      f.write(reinterpret_cast<const char*>(b.data()), static_cast<std::streamsize>(b.size()));
    }
    // Copy into a block of exactly this length, so that the sanitizer finds a read beyond the end.
    const Bytes exact(b);
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
  };
  for (const auto& b : corpus) attempt(b);
  for (uint64_t n = std::strtoull(o["--count"].c_str(), nullptr, 10); n > 0; --n) {
    Bytes b = corpus[next(static_cast<uint32_t>(corpus.size()))];
    mutate(b);
    attempt(b);
  }
  std::printf("%s inputs from seed %s and %zu of the corpus: nothing found\n", o["--count"].c_str(),
              o["--seed"].c_str(), corpus.size());
  return 0;
}
