#include "engine/tokenizer/wordpiece/bert_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <functional>

#include "engine/base/error.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/engine/tokenizer/small_tokenizer.h"

namespace encoderd {
namespace {

using ::testing::ElementsAre;
using namespace std::string_literals;

std::string Repeat(const std::string& part, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += part;
  return text;
}

TEST(BertTokenizerTest, SplitsWordsAndSigns) {
  const auto tokenizer = MakeTokenizer();
  EXPECT_THAT(Ids(*tokenizer, "Unaffable,a  b\n"),
              ElementsAre(kCls, kUn, kAff, kAble, kComma, kA, kB, kSep));
  EXPECT_THAT(Ids(*tokenizer, "a\u4e2da"),
              ElementsAre(kCls, kA, kZhong, kA, kSep));
}

TEST(BertTokenizerTest, NothingLeftGivesTheTemplateAlone) {
  const auto tokenizer = MakeTokenizer();
  for (const std::string& text :
       {""s, " "s, "\t\r\n\u3000"s, "\0"s, "\u0301"s, "\ufffd"s, "\ue000"s}) {
    EXPECT_THAT(Ids(*tokenizer, text), ElementsAre(kCls, kSep));
  }
}

TEST(BertTokenizerTest, RemovedCharactersDoNotEndAWord) {
  const auto tokenizer = MakeTokenizer();
  EXPECT_THAT(Ids(*tokenizer, "un\0aff\u200bable"s),
              ElementsAre(kCls, kUn, kAff, kAble, kSep));
  EXPECT_THAT(Ids(*tokenizer, "cafe\u0301 caf\u00c9"),
              ElementsAre(kCls, kCafe, kCafe, kSep));
}

TEST(BertTokenizerTest, AccentsAndCaseStayWhenTheSwitchesSaySo) {
  TokenizerSpec spec = SmallSpec();
  spec.normalizer = {BertNormalizerOptions{true, true, false, true}};
  const auto accents = MakeTokenizer(spec);
  EXPECT_THAT(Ids(*accents, "caf\u00e9"), ElementsAre(kCls, kUnk, kSep));
  EXPECT_THAT(Ids(*accents, "\u0130"), ElementsAre(kCls, kI, 15, kSep));
  spec.normalizer = {};
  const auto nothing = MakeTokenizer(spec);
  EXPECT_THAT(Ids(*nothing, "A a\u4e2d"), ElementsAre(kCls, kUnk, kUnk, kSep));
  EXPECT_THAT(Ids(*nothing, "a\u00a0b"), ElementsAre(kCls, kA, kB, kSep));
}

TEST(BertTokenizerTest, SpecialTokensInTheTextBecomeTheirIds) {
  const auto tokenizer = MakeTokenizer();
  EXPECT_THAT(Ids(*tokenizer, "a[SEP]b [sep]"),
              ElementsAre(kCls, kA, kSep, kB, kUnk, kUnk, kUnk, kSep));
}

TEST(BertTokenizerTest, LooksForNormalizedTokensInNormalizedText) {
  TokenizerSpec spec = SmallSpec();
  AddedToken token;
  token.content = "\u00c9B";
  token.id = static_cast<int32_t>(spec.vocabulary.size());
  token.normalized = true;
  spec.added_tokens.push_back(token);
  const auto tokenizer = MakeTokenizer(spec);
  EXPECT_EQ(tokenizer->vocab_size(), token.id + 1);
  EXPECT_EQ(tokenizer->Token(token.id), "\u00c9B");
  EXPECT_THAT(Ids(*tokenizer, "aEb e\u0301b"),
              ElementsAre(kCls, kA, token.id, token.id, kSep));
}

TEST(BertTokenizerTest, AWordOverTheLimitIsUnknownCountedAfterNormalization) {
  const auto tokenizer = MakeTokenizer();
  const std::string longest = "a" + std::string(99, 'b');
  EXPECT_EQ(Ids(*tokenizer, longest).size(), 102u);
  EXPECT_THAT(Ids(*tokenizer, longest + "b"), ElementsAre(kCls, kUnk, kSep));
  std::string marked;
  for (const char c : longest) marked += std::string(1, c) + "\u0301";
  EXPECT_EQ(Ids(*tokenizer, marked).size(), 102u);
  EXPECT_THAT(Ids(*tokenizer, std::string(1 << 20, 'b') + " a"),
              ElementsAre(kCls, kUnk, kA, kSep));
}

TEST(BertTokenizerTest, OffsetsAreBytesOfTheOriginal) {
  const auto tokenizer = MakeTokenizer();
  TokenizerScratchPtr scratch = tokenizer->NewScratch();
  Encoding encoding;
  Tokenizer::EncodeOptions options;
  options.offsets = true;
  ASSERT_THAT(tokenizer->EncodePair("\u00c1b ", "x \u4e2d[SEP]", options,
                                    scratch.get(), &encoding),
              IsOk());
  EXPECT_THAT(encoding.token_ids,
              ElementsAre(kCls, kA, kMoreB, kSep, kUnk, kZhong, kSep, kSep));
  EXPECT_THAT(encoding.segment_ids, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(encoding.special, ElementsAre(1, 0, 0, 1, 0, 0, 0, 1));
  std::vector<std::pair<int, int>> places;
  for (const ByteOffset& x : encoding.offsets) {
    places.push_back({x.begin, x.end});
  }
  using P = std::pair<int, int>;
  EXPECT_THAT(places, ElementsAre(P{0, 0}, P{0, 2}, P{2, 3}, P{0, 0}, P{0, 1},
                                  P{2, 5}, P{5, 10}, P{0, 0}));
}

TEST(BertTokenizerTest, RefusesWhatIsNotUtf8AndSaysWhere) {
  const auto tokenizer = MakeTokenizer();
  TokenizerScratchPtr scratch = tokenizer->NewScratch();
  Encoding encoding;
  const absl::Status status =
      tokenizer->EncodePair("fine", "ab\xC3(", {}, scratch.get(), &encoding);
  EXPECT_THAT(status, IsError(absl::StatusCode::kInvalidArgument,
                              "the second text is not UTF-8 at byte 2 of 4"));
  const auto detail = GetErrorDetail(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, "INVALID_UTF8");
  EXPECT_EQ(detail->metadata.at("byte_offset"), "2");
  EXPECT_EQ(detail->field, "second");
}

TEST(BertTokenizerTest, TheCacheChangesNothing) {
  const auto tokenizer = MakeTokenizer();
  TokenizerScratchPtr scratch = tokenizer->NewScratch();
  Encoding again;
  for (int round = 0; round < 3; ++round) {
    for (const std::string& text :
         {"unaffable"s, "un"s, "unaffableb"s, "\u0130\u0307"s, "a\0b"s,
          std::string(31, 'b'), std::string(32, 'b'), std::string(33, 'b')}) {
      ASSERT_THAT(tokenizer->Encode(text, {}, scratch.get(), &again), IsOk());
      EXPECT_EQ(again.token_ids, Ids(*tokenizer, text)) << text;
    }
  }
}

// Processor seconds of this thread, the least of several runs.
double Seconds(const std::function<void()>& work) {
  double least = 1e9;
  for (int run = 0; run < 7; ++run) {
    timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    work();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    least = std::min(
        least, static_cast<double>(end.tv_sec - begin.tv_sec) +
                   1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec));
  }
  return least;
}

// t(8n) <= 20 t(n). A disturbed measurement is repeated; quadratic work would
// give 64 every time.
TEST(BertTokenizerTest, TimeIsLinearInTheTextWhateverItIs) {
  const auto tokenizer = MakeTokenizer();
  TokenizerScratchPtr scratch = tokenizer->NewScratch();
  Encoding encoding;
  for (const std::string& part :
       {"unaffable "s, "b"s, "["s, "[SEP"s, "\u0301\u0316"s, "\U0001D165"s,
        "\uac01"s, "\u4e2d"s, " "s, "\0"s, "[SEP]  "s}) {
    for (const bool offsets : {false, true}) {
      const size_t bytes = offsets ? 1 << 15 : 1 << 18;
      const std::string once = Repeat(part, bytes);
      const std::string longer = Repeat(part, 8 * bytes);
      const auto seconds = [&](const std::string& text) {
        return Seconds([&] {
          Tokenizer::EncodeOptions options;
          options.offsets = offsets;
          EXPECT_THAT(
              tokenizer->Encode(text, options, scratch.get(), &encoding),
              IsOk());
        });
      };
      double ratio = 1e9;
      for (int attempt = 0; attempt < 5 && ratio > 20; ++attempt) {
        ratio = std::min(ratio, seconds(longer) / seconds(once));
      }
      EXPECT_LE(ratio, 20) << "of \"" << part << "\", offsets " << offsets;
    }
  }
}

}  // namespace
}  // namespace encoderd
