// A tokenizer of a few words for tests, and one of a tokenizer.json.
#ifndef ENCODERD_TESTS_UNIT_ENGINE_TOKENIZER_SMALL_TOKENIZER_H_
#define ENCODERD_TESTS_UNIT_ENGINE_TOKENIZER_SMALL_TOKENIZER_H_

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/tokenizer/files/tokenizer_spec.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/wordpiece/bert_tokenizer.h"
#include "tests/support/temp_folder.h"

namespace encoderd {

// Ids are the places in this list.
inline TokenizerSpec SmallSpec() {
  TokenizerSpec spec;
  spec.vocabulary = {"[PAD]",  "[UNK]", "[CLS]", "[SEP]",    "un",     "##aff",
                     "##able", "a",     "b",     "##b",      "cafe",   ",",
                     "\u4e2d", "i",     "##i",   "##\u0307", "\u03c3", "##x"};
  for (int id = 0; id < 4; ++id) {
    spec.added_tokens.push_back({spec.vocabulary[id], id});
  }
  spec.normalizer = {BertNormalizerOptions{}};
  spec.pre_tokenizer = {BertSplit{}};
  spec.post_processor.pieces = Template::Bert(2, 3);
  return spec;
}
inline constexpr int kUnk = 1, kCls = 2, kSep = 3, kUn = 4, kAff = 5, kAble = 6,
                     kA = 7, kB = 8, kMoreB = 9, kCafe = 10, kComma = 11,
                     kZhong = 12, kI = 13, kSigma = 16;

inline std::unique_ptr<const Tokenizer> MakeTokenizer(
    TokenizerSpec spec = SmallSpec()) {
  absl::StatusOr<std::unique_ptr<const Tokenizer>> tokenizer =
      BertTokenizer::Create(std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

inline std::vector<int32_t> Ids(const Tokenizer& tokenizer,
                                absl::string_view text) {
  TokenizerScratchPtr scratch = tokenizer.NewScratch();
  Encoding encoding;
  EXPECT_TRUE(tokenizer.Encode(text, {}, scratch.get(), &encoding).ok());
  return encoding.token_ids;
}

// What Load says of a wrong file, and of one that is right but not supported.
inline constexpr auto kLoss = absl::StatusCode::kDataLoss;
inline constexpr auto kUnsupported = absl::StatusCode::kUnimplemented;

// Of a folder that has this tokenizer.json alone.
inline absl::StatusOr<std::unique_ptr<const Tokenizer>> LoadJson(
    const nlohmann::json& json) {
  TempFolder folder;
  folder.Write("tokenizer.json", json.dump());
  return Tokenizer::Load(folder.path());
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_UNIT_ENGINE_TOKENIZER_SMALL_TOKENIZER_H_
