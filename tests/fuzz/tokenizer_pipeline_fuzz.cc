// Any bytes as text for tokenizers put together of parts. The first byte
// chooses one, a pair and how much is cut; tokenizer_checks.h says what must
// hold.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/tokenizer/bpe/byte_level.h"
#include "engine/tokenizer/pipeline_tokenizer.h"
#include "tests/fuzz/tokenizer_checks.h"

namespace {

using encoderd::Require;

// Every byte but two, and a few merges, some of which overlap.
encoderd::TokenizerSpec BytePairSpec(int switches) {
  encoderd::TokenizerSpec spec;
  spec.vocabulary = {"<s>", "</s>", "<unk>", "<mask>"};
  for (int byte = 0; byte < 256; ++byte) {
    if (byte == 'q' || byte == 0xF0) continue;
    spec.vocabulary.push_back(encoderd::byte_level::FromBytes(
        std::string(1, static_cast<char>(byte))));
  }
  encoderd::BytePairOptions options;
  const auto find = [&](const std::string& entry) {
    const auto at =
        std::find(spec.vocabulary.begin(), spec.vocabulary.end(), entry);
    return static_cast<int32_t>(at - spec.vocabulary.begin());
  };
  const std::vector<std::pair<std::string, std::string>> merges = {
      {"a", "b"}, {"b", "a"},  {"ab", "ab"},     {"a", "ba"},
      {" ", "a"}, {" a", "b"}, {"\xC3", "\xA9"}, {"\xA9", "\xC3"}};
  for (const auto& [left, right] : merges) {
    spec.vocabulary.push_back(encoderd::byte_level::FromBytes(left + right));
    options.merges.push_back(
        {find(encoderd::byte_level::FromBytes(left)),
         find(encoderd::byte_level::FromBytes(right)),
         static_cast<int32_t>(spec.vocabulary.size()) - 1});
  }
  options.ignore_merges = (switches & 4) != 0;
  options.fuse_unk = (switches & 2) != 0;
  options.unk_token = "<unk>";
  spec.model = std::move(options);
  spec.pre_tokenizer = {
      encoderd::ByteLevelSplit{(switches & 1) != 0, (switches & 8) == 0}};
  spec.post_processor.pieces = encoderd::Template::Roberta(0, 1);
  spec.post_processor.trim_offsets = true;
  spec.post_processor.add_prefix_space = (switches & 1) != 0;
  for (int id = 0; id < 4; ++id) {
    spec.added_tokens.push_back({spec.vocabulary[id], id});
  }
  const auto beyond = static_cast<int32_t>(spec.vocabulary.size());
  spec.added_tokens.push_back({"<w>", beyond, true, true, true, false});
  spec.added_tokens.push_back({"zz", beyond + 1, false, true, true, true});
  return spec;
}

std::unique_ptr<const encoderd::Tokenizer> MakeTokenizer(int switches) {
  auto tokenizer = encoderd::PipelineTokenizer::Create(BytePairSpec(switches));
  Require(tokenizer.ok());
  return *std::move(tokenizer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view text(reinterpret_cast<const char*>(data) + 1,
                               size - 1);
  encoderd::CheckEncoding(encoderd::SubjectFor(data[0] & 15, MakeTokenizer),
                          text, (data[0] & 32) != 0, data[0] >> 6);
  return 0;
}
