// How fast the tokenizer is, for tokenizer_bench.py, which compares it.
//
//   tokenizer_speed FOLDER < texts
//
// Reads texts (length in 4 bytes, little-endian, then UTF-8) and then, each
// time a line comes on descriptor 3, encodes all of them once and prints
// "seconds tokens". With --load it prints the seconds of one Load instead.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer.h"

namespace encoderd {
namespace {

double Since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

int Run(const char* folder, bool load_only) {
  const auto begin = std::chrono::steady_clock::now();
  absl::StatusOr<std::unique_ptr<const Tokenizer>> tokenizer =
      Tokenizer::Load(folder);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.status().ToString().c_str());
    return 1;
  }
  if (load_only) {
    std::printf("%.9f 0\n", Since(begin));
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
    const auto start = std::chrono::steady_clock::now();
    int64_t tokens = 0;
    for (const std::string& text : texts) {
      const absl::Status status =
          (*tokenizer)->Encode(text, {}, scratch.get(), &encoding);
      if (!status.ok()) return 1;
      tokens += static_cast<int64_t>(encoding.token_ids.size());
    }
    std::printf("%.9f %lld\n", Since(start), static_cast<long long>(tokens));
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
