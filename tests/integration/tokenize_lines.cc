// Tokenizes records from standard input, for programs that compare tokenizers.
//
//   tokenize_lines FOLDER < records > results
//
// Numbers are little-endian, 32 bits unless said otherwise.
//   record: flags (1 pair, 2 offsets, 4 truncate, 8 truncate at the start),
//           max_len, bytes of the first text, bytes of the second, both texts
//   result: n, token ids [n], segments [n] and, with offsets, begin and end
//           [n,2] and special [n] as bytes
//   refused text: -1, the byte at which UTF-8 ends
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/tokenizer/tokenizer.h"

namespace encoderd {
namespace {

template <typename T>
void Write(const std::vector<T>& values) {
  std::fwrite(values.data(), sizeof(T), values.size(), stdout);
}

bool Read(void* out, size_t bytes) {
  return std::fread(out, 1, bytes, stdin) == bytes;
}

int Run(const char* folder) {
  absl::StatusOr<std::unique_ptr<const Tokenizer>> tokenizer =
      Tokenizer::Load(folder);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.status().ToString().c_str());
    return 1;
  }
  TokenizerScratchPtr scratch = (*tokenizer)->NewScratch();
  Encoding encoding;
  std::string first, second;
  int32_t head[4];
  while (Read(head, sizeof(head))) {
    first.resize(static_cast<uint32_t>(head[2]));
    second.resize(static_cast<uint32_t>(head[3]));
    if (!Read(first.data(), first.size()) ||
        !Read(second.data(), second.size())) {
      std::fprintf(stderr, "a record is cut short\n");
      return 1;
    }
    Tokenizer::EncodeOptions options;
    options.offsets = (head[0] & 2) != 0;
    const absl::Status status =
        (head[0] & 1) != 0
            ? (*tokenizer)
                  ->EncodePair(first, second, options, scratch.get(), &encoding)
            : (*tokenizer)->Encode(first, options, scratch.get(), &encoding);
    if (!status.ok()) {
      const auto detail = GetErrorDetail(status);
      const int32_t at =
          detail.has_value() && detail->reason == "INVALID_UTF8"
              ? std::atoi(detail->metadata.at("byte_offset").c_str())
              : -1;
      Write(std::vector<int32_t>{-1, at});
      continue;
    }
    if ((head[0] & 4) != 0) {
      (*tokenizer)
          ->Truncate(
              head[1],
              (head[0] & 8) != 0 ? TruncateSide::kStart : TruncateSide::kEnd,
              &encoding);
    }
    Write(
        std::vector<int32_t>{static_cast<int32_t>(encoding.token_ids.size())});
    Write(encoding.token_ids);
    Write(encoding.segment_ids);
    if (options.offsets) {
      Write(encoding.offsets);
      Write(encoding.special);
    }
  }
  return 0;
}

}  // namespace
}  // namespace encoderd

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tokenize_lines FOLDER < records > results\n");
    return 2;
  }
  return encoderd::Run(argv[1]);
}
