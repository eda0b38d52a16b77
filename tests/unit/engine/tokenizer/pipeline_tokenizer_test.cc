#include "engine/tokenizer/pipeline_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "engine/base/error.h"
#include "engine/tokenizer/bpe/byte_level.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/engine/tokenizer/small_tokenizer.h"

namespace encoderd {
namespace {

using ::testing::ElementsAre;
using P = std::pair<int, int>;

constexpr int kBos = 0, kEos = 1, kMask = 2, kFirstByte = 3;
constexpr int kAb = kFirstByte + 256, kSpaceAb = kAb + 1;

int Byte(char c) { return kFirstByte + static_cast<uint8_t>(c); }

// Every byte, "ab" and " ab"; RoBERTa's template.
TokenizerSpec BytesSpec(bool add_prefix_space = false) {
  TokenizerSpec spec;
  spec.vocabulary = {"<s>", "</s>", "<mask>"};
  for (int byte = 0; byte < 256; ++byte) {
    spec.vocabulary.push_back(
        byte_level::FromBytes(std::string(1, static_cast<char>(byte))));
  }
  spec.vocabulary.push_back("ab");
  spec.vocabulary.push_back("\u0120ab");
  BytePairOptions options;
  options.merges = {{Byte('a'), Byte('b'), kAb}, {Byte(' '), kAb, kSpaceAb}};
  spec.model = options;
  spec.pre_tokenizer = {ByteLevelSplit{add_prefix_space, true}};
  spec.post_processor.pieces = Template::Roberta(kBos, kEos);
  spec.post_processor.trim_offsets = true;
  spec.post_processor.add_prefix_space = add_prefix_space;
  for (int id = 0; id < 3; ++id) {
    spec.added_tokens.push_back({spec.vocabulary[id], id});
    spec.added_tokens.back().special = true;
  }
  spec.added_tokens.back().lstrip = true;
  return spec;
}

std::unique_ptr<const Tokenizer> Make(TokenizerSpec spec) {
  auto tokenizer = PipelineTokenizer::Create(std::move(spec));
  EXPECT_THAT(tokenizer, IsOk());
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

std::vector<P> Places(const Tokenizer& tokenizer, absl::string_view text) {
  Encoding encoding;
  const TokenizerScratchPtr scratch = tokenizer.NewScratch();
  EXPECT_THAT(
      tokenizer.Encode(text, {.offsets = true}, scratch.get(), &encoding),
      IsOk());
  std::vector<P> places;
  for (const ByteOffset& x : encoding.offsets) {
    places.push_back({x.begin, x.end});
  }
  return places;
}

TEST(PipelineTokenizerTest, WordsAreMergedAndTheTemplateStandsAround) {
  const auto tokenizer = Make(BytesSpec());
  EXPECT_EQ(tokenizer->algorithm(), "BPE");
  EXPECT_EQ(tokenizer->num_special_tokens(true), 4);
  EXPECT_THAT(Ids(*tokenizer, "ab ab"), ElementsAre(kBos, kAb, kSpaceAb, kEos));
  EXPECT_THAT(Ids(*tokenizer, "a\u00e9"),
              ElementsAre(kBos, Byte('a'), Byte('\xC3'), Byte('\xA9'), kEos));
  EXPECT_THAT(Ids(*tokenizer, ""), ElementsAre(kBos, kEos));
  EXPECT_THAT(Ids(*Make(BytesSpec(true)), "ab"),
              ElementsAre(kBos, kSpaceAb, kEos));
}

TEST(PipelineTokenizerTest, AddedTokensAreFoundInTheText) {
  const auto tokenizer = Make(BytesSpec());
  EXPECT_THAT(Ids(*tokenizer, "ab <mask> ab"),
              ElementsAre(kBos, kAb, kMask, kSpaceAb, kEos));
  TokenizerSpec spec = BytesSpec(true);
  spec.added_tokens[2].normalized = true;
  EXPECT_THAT(Ids(*Make(spec), "ab<mask>ab"),
              ElementsAre(kBos, kSpaceAb, kMask, kSpaceAb, kEos));
}

TEST(PipelineTokenizerTest, OffsetsAreBytesOfTheOriginalWithoutSpaces) {
  EXPECT_THAT(Places(*Make(BytesSpec()), "ab ab <mask>\u00e9"),
              ElementsAre(P{0, 0}, P{0, 2}, P{3, 5}, P{6, 12}, P{12, 14},
                          P{12, 14}, P{0, 0}));
  EXPECT_THAT(Places(*Make(BytesSpec(true)), "ab ab"),
              ElementsAre(P{0, 0}, P{0, 2}, P{3, 5}, P{0, 0}));
}

TEST(PipelineTokenizerTest, BothTextsOfAPairAreOfSegmentZero) {
  const auto tokenizer = Make(BytesSpec());
  const TokenizerScratchPtr scratch = tokenizer->NewScratch();
  Encoding encoding;
  ASSERT_THAT(tokenizer->EncodePair("ab", "ab", {}, scratch.get(), &encoding),
              IsOk());
  EXPECT_THAT(encoding.token_ids,
              ElementsAre(kBos, kAb, kEos, kEos, kAb, kEos));
  EXPECT_THAT(encoding.segment_ids, ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(encoding.text_begins, ElementsAre(1, 4));
}

TEST(PipelineTokenizerTest, TheCacheChangesNothing) {
  const auto tokenizer = Make(BytesSpec());
  const TokenizerScratchPtr scratch = tokenizer->NewScratch();
  Encoding again;
  for (int round = 0; round < 3; ++round) {
    for (const std::string& text :
         {std::string("ab"), std::string("ab ab"), std::string("ab\0ab", 5),
          std::string(31, 'x'), std::string(32, 'x'), std::string(33, 'x'),
          std::string(24, '\xC3') + "x"}) {
      const absl::Status status =
          tokenizer->Encode(text, {}, scratch.get(), &again);
      if (text[0] == '\xC3') {
        EXPECT_THAT(status, IsError(absl::StatusCode::kInvalidArgument,
                                    "not UTF-8 at byte 0 of 25"));
        continue;
      }
      EXPECT_EQ(again.token_ids, Ids(*tokenizer, text)) << text;
    }
  }
}

TEST(PipelineTokenizerTest, TextsThatGrowTooLargeAreRejectedWithTheNumbers) {
  TokenizerSpec spec = BytesSpec();
  spec.normalizer = {ReplaceStep{"a", std::string(160, 'b'), 0}};
  const auto tokenizer = Make(spec);
  const TokenizerScratchPtr scratch = tokenizer->NewScratch();
  Encoding encoding;
  const std::string text(300000, 'a');
  for (const bool offsets : {false, true}) {
    const absl::Status status =
        tokenizer->Encode(text, {.offsets = offsets}, scratch.get(), &encoding);
    EXPECT_THAT(status,
                IsError(absl::StatusCode::kInvalidArgument,
                        "the text has 300000 bytes, and at least 48000000 "
                        "after normalization; at most 1200000 are allowed"));
    const auto detail = GetErrorDetail(status);
    ASSERT_TRUE(detail.has_value());
    EXPECT_EQ(detail->reason, "REQUEST_TOO_LARGE");
    EXPECT_EQ(detail->field, "text");
    EXPECT_EQ(detail->metadata, (std::map<std::string, std::string>{
                                    {"text_bytes", "300000"},
                                    {"normalized_bytes", "48000000"},
                                    {"limit", "1200000"}}));
  }
  const absl::Status second =
      tokenizer->EncodePair("x", text, {}, scratch.get(), &encoding);
  EXPECT_EQ(GetErrorDetail(second)->field, "second");
  // The scratch serves on.
  ASSERT_THAT(tokenizer->Encode("x", {}, scratch.get(), &encoding), IsOk());
  EXPECT_THAT(encoding.token_ids, ElementsAre(kBos, Byte('x'), kEos));
}

TEST(PipelineTokenizerTest, PiecesBetweenAddedTokensShareTheLimit) {
  TokenizerSpec spec = BytesSpec();
  spec.normalizer = {ReplaceStep{"a", std::string(160, 'b'), 0}};
  const auto tokenizer = Make(spec);
  const std::string piece(4000, 'a');
  EXPECT_EQ(Ids(*tokenizer, piece).size(), 640000 + 2u);
  const TokenizerScratchPtr scratch = tokenizer->NewScratch();
  Encoding encoding;
  EXPECT_THAT(
      tokenizer->Encode(piece + "<mask>" + piece, {}, scratch.get(), &encoding),
      IsError(absl::StatusCode::kInvalidArgument,
              "the text has 8006 bytes, and at least 1280000 after "
              "normalization; at most 1048576 are allowed"));
}

TEST(PipelineTokenizerTest, LigaturesThatGrowElevenfoldWorkUpToOneMebibyte) {
  TokenizerSpec spec = BytesSpec();
  spec.normalizer = {UnicodeFormStep{unicode::Form::kNfkc}};
  const auto tokenizer = Make(spec);
  const auto ligatures = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "\ufdfa";
    return text;
  };
  const std::vector<int32_t> one = Ids(*tokenizer, ligatures(1));
  ASSERT_EQ(one.size(), 33 + 2u);
  std::vector<int32_t> expected = {kBos};
  for (int i = 0; i < 31000; ++i) {
    expected.insert(expected.end(), one.begin() + 1, one.end() - 1);
  }
  expected.push_back(kEos);
  EXPECT_EQ(Ids(*tokenizer, ligatures(31000)), expected);
  const TokenizerScratchPtr scratch = tokenizer->NewScratch();
  Encoding encoding;
  EXPECT_THAT(tokenizer->Encode(ligatures(32000), {}, scratch.get(), &encoding),
              IsError(absl::StatusCode::kInvalidArgument,
                      "at most 1048576 are allowed"));
}

TEST(PipelineTokenizerTest, SaysWhichBytesHaveNoEntry) {
  TokenizerSpec spec = BytesSpec();
  spec.vocabulary[Byte('x')] = "other";
  const auto tokenizer = Make(spec);
  ASSERT_EQ(tokenizer->remarks().notes.size(), 1u);
  EXPECT_NE(tokenizer->remarks().notes[0].find("no entry for 1 of 256 bytes"),
            std::string::npos);
  EXPECT_TRUE(Make(BytesSpec())->remarks().notes.empty());
}

}  // namespace
}  // namespace encoderd
