// How fast the tokenizer is, for tokenizer_bench.py, which compares it.
//
//   tokenizer_speed FOLDER < texts
//
// Reads texts (length in 4 bytes, little-endian, then UTF-8) and then, each
// time a line comes on descriptor 3, encodes all of them once and prints
// "seconds tokens", in seconds of CPU time. With --load it prints those of one
// Load instead.
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer.h"

namespace encoderd {
namespace {

double CpuSeconds() {
  timespec used = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * used.tv_nsec;
}

int Run(const char* folder, bool load_only) {
  const double begin = CpuSeconds();
  absl::StatusOr<std::unique_ptr<const Tokenizer>> tokenizer =
      Tokenizer::Load(folder);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.status().ToString().c_str());
    return 1;
  }
  if (load_only) {
    std::printf("%.9f 0\n", CpuSeconds() - begin);
    return 0;
  }
  std::vector<std::string> texts;
  uint32_t bytes;
  while (std::fread(&bytes, 1, sizeof(bytes), stdin) == sizeof(bytes)) {
    std::string text(bytes, '\0');
    if (std::fread(text.data(), 1, bytes, stdin) != bytes) return 1;
    texts.push_back(std::move(text));
  }
  TokenizerScratchPtr scratch = (*tokenizer)->NewScratch();
  Encoding encoding;
  std::FILE* const orders = fdopen(3, "r");
  char line[16];
  while (orders != nullptr &&
         std::fgets(line, sizeof(line), orders) != nullptr) {
    const double start = CpuSeconds();
    int64_t tokens = 0;
    for (const std::string& text : texts) {
      const absl::Status status =
          (*tokenizer)->Encode(text, {}, scratch.get(), &encoding);
      if (!status.ok()) return 1;
      tokens += static_cast<int64_t>(encoding.token_ids.size());
    }
    std::printf("%.9f %lld\n", CpuSeconds() - start,
                static_cast<long long>(tokens));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace encoderd

int main(int argc, char** argv) {
  const bool load = argc == 3 && std::strcmp(argv[2], "--load") == 0;
  if (argc != 2 && !load) {
    std::fprintf(stderr, "usage: tokenizer_speed FOLDER [--load] < texts\n");
    return 2;
  }
  return encoderd::Run(argv[1], load);
}
