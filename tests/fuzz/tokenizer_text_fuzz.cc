// Any bytes as text for BERT's tokenizer. The first byte chooses the
// normalizer's switches, a pair and how much is cut; tokenizer_checks.h says
// what must hold.
#include <cstdint>
#include <memory>
#include <utility>

#include "engine/tokenizer/wordpiece/bert_tokenizer.h"
#include "tests/fuzz/tokenizer_checks.h"

namespace {

using encoderd::Require;

std::unique_ptr<const encoderd::Tokenizer> MakeTokenizer(int switches) {
  encoderd::TokenizerSpec spec;
  spec.vocabulary = {"[PAD]",  "[UNK]",    "[CLS]",    "[SEP]",   "a",
                     "b",      "ab",       "##a",      "##b",     "##ab",
                     "abab",   "e",        "##e",      "i",       "##\u0307",
                     "\u1100", "##\u1161", "##\u11a8", "\u4e2d",  ",",
                     "\u0915", "##\u093e", "\u302e",   "##\u302f"};
  for (int id = 0; id < 4; ++id) {
    spec.added_tokens.push_back({spec.vocabulary[id], id});
  }
  spec.added_tokens.push_back({"<w>", 24, true, true, true, false});
  // Looked for in normalized text, which leaves no fast way.
  if ((switches & 16) != 0) {
    spec.added_tokens.push_back({"\u00c9 a", 25, false, true, false, true});
  }
  spec.post_processor.pieces = encoderd::Template::Bert(2, 3);
  spec.model.emplace<encoderd::WordPieceOptions>().max_word_chars = 12;
  spec.pre_tokenizer = {encoderd::BertSplit{}};
  spec.normalizer = {encoderd::BertNormalizerOptions{
      (switches & 1) == 0, (switches & 2) == 0, (switches & 4) == 0,
      (switches & 8) == 0}};
  auto tokenizer = encoderd::BertTokenizer::Create(std::move(spec));
  Require(tokenizer.ok());
  return *std::move(tokenizer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view text(reinterpret_cast<const char*>(data) + 1,
                               size - 1);
  encoderd::CheckEncoding(encoderd::SubjectFor(data[0] & 31, MakeTokenizer),
                          text, (data[0] & 32) != 0, data[0] >> 6);
  return 0;
}
