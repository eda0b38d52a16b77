// Which bytes stand for the original's first character: known without places,
// and as the places have it. What happens at a text's limit.
#include "engine/tokenizer/normal_text.h"

#include <gtest/gtest.h>

#include "engine/tokenizer/normalizer.h"
#include "engine/tokenizer/pre_tokenizer.h"

namespace encoderd {
namespace {

NormalText Text(absl::string_view text, int32_t origin, bool tracked) {
  NormalText out;
  out.Assign(text, origin, tracked);
  return out;
}

// Bytes at the front whose place begins at 0.
int32_t PlacesAtStart(const NormalText& text) {
  int32_t at = 0;
  while (at < text.all().end && text.Place({at, at + 1}).begin == 0) ++at;
  return at;
}

TEST(NormalTextTest, TheFirstCharacterStartsTheTextOnlyAtItsBegin) {
  EXPECT_EQ(Text("\u00e9a", 0, false).start_bytes(), 2);
  EXPECT_EQ(Text("\u00e9a", 0, true).start_bytes(), 2);
  EXPECT_EQ(Text("\u00e9a", 5, false).start_bytes(), 0);
  EXPECT_EQ(Text("", 0, false).start_bytes(), 0);
}

TEST(NormalTextTest, WithoutPlacesTheFirstCharacterIsToldFromLaterOnes) {
  const NormalText text = Text("\u00e9ab", 0, false);
  EXPECT_EQ(text.Place({0, 2}).begin, 0);
  EXPECT_EQ(text.Place({1, 3}).begin, 0);
  EXPECT_NE(text.Place({2, 3}).begin, 0);
}

TEST(NormalTextTest, PartsBringTheirShareOfTheFirstCharacter) {
  const NormalText text = Text("\u4e2da", 0, false);
  NormalText out;
  out.Reset(false);
  out.Append("<", text.Place({0, 3}));
  out.Append(text, {1, 4});
  EXPECT_EQ(out.start_bytes(), 3);
  out.Append(text, {0, 1});  // behind a later character
  EXPECT_EQ(out.start_bytes(), 3);
}

TEST(NormalTextTest, StepsKeepTheStartAsThePlacesHaveIt) {
  const std::vector<std::vector<NormalizerStep>> normalizers = {
      {UnicodeFormStep{unicode::Form::kNfkd}, StripAccentsStep{},
       LowercaseStep{}},
      {UnicodeFormStep{unicode::Form::kNfc}, StripStep{}},
      {PrependStep{"x"}, ReplaceStep{"a", "", 0}, ReplaceStep{" ", "_", 1}},
      {BertNormalizerOptions{}},
  };
  for (const auto& steps : normalizers) {
    const Normalizer normalizer(steps);
    for (const char* source :
         {"", "a", "\u0301a", "\u00a8a", "\u0130b", " \u00e9", "\uac01a", "aab",
          "\u0001a", "e\u0301\u0316x", "\u1e9b\u0323", "  a  "}) {
      for (const int32_t origin : {0, 7}) {
        NormalText plain = Text(source, origin, false);
        NormalText tracked = Text(source, origin, true);
        Normalizer::Scratch scratch;
        normalizer.Apply(&plain, &scratch);
        normalizer.Apply(&tracked, &scratch);
        EXPECT_EQ(plain.text(), tracked.text()) << source;
        EXPECT_EQ(plain.start_bytes(), PlacesAtStart(tracked)) << source;
        EXPECT_EQ(tracked.start_bytes(), PlacesAtStart(tracked)) << source;
      }
    }
  }
}

TEST(NormalTextTest, MetaspaceMarksTheFirstWordWithoutPlaces) {
  const PreTokenizer pre_tokenizer(
      {WhitespaceSplit{},
       MetaspaceSplit{0x2581, MetaspaceSplit::kFirst, true}});
  PreTokenizer::Scratch scratch;
  for (const bool tracked : {false, true}) {
    const NormalText text = Text("ab c", 0, tracked);
    EXPECT_EQ(pre_tokenizer.Split(text, text.all(), &scratch).text->text(),
              "\u2581abc");
    const NormalText later = Text("ab c", 3, tracked);
    EXPECT_EQ(pre_tokenizer.Split(later, later.all(), &scratch).text->text(),
              "abc");
  }
}

TEST(NormalTextTest, TheLimitIsFourTimesTheTextAndAtLeastOneMebibyte) {
  EXPECT_EQ(NormalText::Limit(0), 1 << 20);
  EXPECT_EQ(NormalText::Limit(256 << 10), 1 << 20);
  EXPECT_EQ(NormalText::Limit(16 << 20), 64 << 20);
  EXPECT_EQ(NormalText::Limit(NormalText::kMaxBytes), NormalText::kMaxBytes);
}

TEST(NormalTextTest, WhatExceedsTheLimitIsCountedAndLeftOut) {
  for (const bool tracked : {false, true}) {
    NormalText text, part = Text("cdefg", 0, tracked);
    text.Assign("ab", 0, tracked, 4);
    text.Append("cd", {2, 3});
    EXPECT_FALSE(text.exceeded());
    EXPECT_EQ(text.wanted_bytes(), 4);
    text.Append("e", {2, 3});
    text.Append(part, part.all());
    if (!tracked) text.AppendLater("efg");
    EXPECT_TRUE(text.exceeded());
    EXPECT_EQ(text.text(), "abcd");
    EXPECT_EQ(text.wanted_bytes(), tracked ? 10 : 13);
    NormalText copy;
    copy.ResetLike(text);
    EXPECT_FALSE(copy.exceeded());
    copy.Append("abcde", {0, 1});
    EXPECT_EQ(copy.wanted_bytes(), 5);
    EXPECT_TRUE(copy.exceeded());
  }
}

TEST(NormalTextTest, TheNormalizerEndsAtTheStepThatExceedsTheLimit) {
  std::vector<NormalizerStep> steps(40, ReplaceStep{"a", "aa", 0});
  steps.push_back(StripStep{});
  const Normalizer doubles(steps);
  const Normalizer ligatures({UnicodeFormStep{unicode::Form::kNfkc}});
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "\ufdfa";
  for (const bool tracked : {false, true}) {
    NormalText text;
    Normalizer::Scratch scratch;
    text.Assign("a", 0, tracked, 1000);
    doubles.Apply(&text, &scratch);
    EXPECT_TRUE(text.exceeded());
    EXPECT_EQ(text.wanted_bytes(), 1024);
    // 11 times its bytes; not all of them are counted.
    text.Assign(many, 0, tracked, 9000);
    ligatures.Apply(&text, &scratch);
    EXPECT_TRUE(text.exceeded());
    EXPECT_GT(text.wanted_bytes(), 9000);
    EXPECT_LT(text.wanted_bytes(), 9100);
    text.Assign(many, 0, tracked, 33000);
    ligatures.Apply(&text, &scratch);
    EXPECT_FALSE(text.exceeded());
    EXPECT_EQ(text.wanted_bytes(), 33000);
  }
}

TEST(NormalTextTest, ThePreTokenizerHasTheSameLimit) {
  const MetaspaceSplit marks{0x2581, MetaspaceSplit::kAlways, true};
  const std::vector<std::vector<PreTokenizerStep>> all_steps = {
      {BertSplit{}, marks},
      {marks, ByteLevelSplit{true, true}},
      {BertSplit{}, ByteLevelSplit{true, true}, marks}};
  for (const auto& steps : all_steps) {
    const PreTokenizer pre_tokenizer(steps);
    PreTokenizer::Scratch scratch;
    for (const bool tracked : {false, true}) {
      NormalText text;
      text.Assign(",,,,", 0, tracked, 5);
      const NormalText* const result =
          pre_tokenizer.Split(text, text.all(), &scratch).text;
      EXPECT_TRUE(result->exceeded());
      EXPECT_GT(result->wanted_bytes(), 5);
      text.Assign(",,,,", 0, tracked, 100);
      EXPECT_FALSE(
          pre_tokenizer.Split(text, text.all(), &scratch).text->exceeded());
    }
  }
}

}  // namespace
}  // namespace encoderd
