// A few code points of each rule; the differential test compares all of them.
#include "engine/tokenizer/unicode/unicode_rules.h"

#include <gtest/gtest.h>

namespace encoderd::unicode {
namespace {

TEST(UnicodeRulesTest, RemovesControlsButNotTabsAndLineBreaks) {
  for (const char32_t c : {0x00, 0x01, 0x7F, 0x200B, 0xE000, 0xFFFD}) {
    EXPECT_TRUE(IsRemoved(c)) << std::hex << static_cast<uint32_t>(c);
  }
  for (const char32_t c : {0x09, 0x0A, 0x0D, 0x20, 0x61, 0x0378}) {
    EXPECT_FALSE(IsRemoved(c)) << std::hex << static_cast<uint32_t>(c);
  }
}

TEST(UnicodeRulesTest, KnowsCategoriesOfUnicode8Only) {
  EXPECT_FALSE(IsRemoved(0x8E2));         // a format character since 9.0
  EXPECT_FALSE(IsNonspacingMark(0x8D4));  // a mark since 9.0
  EXPECT_TRUE(IsNonspacingMark(0x8E3));   // a mark since 8.0
  EXPECT_TRUE(IsNonspacingMark(0x1734));  // a spacing mark since 14.0
  EXPECT_FALSE(IsPunctuation(0x2E43));    // punctuation since 9.0
  EXPECT_TRUE(IsPunctuation(0x166D));     // a symbol since 12.0
  EXPECT_TRUE(IsPunctuation(U'$'));       // every ASCII sign
  EXPECT_FALSE(IsPunctuation(0x20AC));    // other symbols are not
}

TEST(UnicodeRulesTest, DecomposesAsUnicode9Does) {
  std::u32string out;
  AppendDecomposed(0x1E69, &out);
  AppendDecomposed(0xAC01, &out);
  AppendDecomposed(0x11938, &out);  // since 13.0
  EXPECT_EQ(out, U"s\u0323\u0307\u1100\u1161\u11A8\U00011938");
  EXPECT_EQ(CombiningClass(0x0323), 220);
  EXPECT_EQ(CombiningClass(0x07FD), 0);  // since 11.0
}

TEST(UnicodeRulesTest, InertIsWhatNoDecompositionChangesAndNothingMoves) {
  EXPECT_TRUE(IsInert(U'a', true));
  EXPECT_TRUE(IsInert(0x0915, true));
  EXPECT_TRUE(IsInert(0x2460, false));
  EXPECT_FALSE(IsInert(0x2460, true));
  for (char32_t c = 0; c < kCodePoints; ++c) {
    for (const bool compatible : {false, true}) {
      if (!IsInert(c, compatible)) continue;
      std::u32string out;
      compatible ? AppendCompatible(c, &out) : AppendDecomposed(c, &out);
      ASSERT_EQ(out, std::u32string(1, c));
      ASSERT_EQ(CombiningClass(c), 0);
    }
  }
}

TEST(UnicodeRulesTest, LowersWithoutContextOrLanguage) {
  std::u32string out;
  for (const char32_t c : {U'I', U'\u0130', U'\u03A3', U'\u212A', U'\uA7CB',
                           U'\U00010D50', U'\U00016EB8', U'\u4E2D'}) {
    AppendLower(c, &out);
  }
  EXPECT_EQ(out, U"ii\u0307\u03C3k\u0264\U00010D70\U00016ED3\u4E2D");
}

TEST(UnicodeRulesTest, IdeographsLeaveOutTheRangeThatTheReferenceForgot) {
  EXPECT_TRUE(IsCjk(0x4E00));
  EXPECT_TRUE(IsCjk(0xF900));
  EXPECT_TRUE(IsCjk(0x2B81F));
  EXPECT_FALSE(IsCjk(0x2B820));
  EXPECT_FALSE(IsCjk(0x2B91F));
  EXPECT_TRUE(IsCjk(0x2B920));
  EXPECT_FALSE(IsCjk(0x3042));  // kana make words
}

TEST(UnicodeRulesTest, WordCharactersAreLettersMarksDigitsAndJoiners) {
  for (const char32_t c : {U'a', U'_', U'7', U'\u0301', U'\u200D', U'\u24B6',
                           U'\U00010D40', U'\U0002EBF0'}) {
    EXPECT_TRUE(IsWordChar(c)) << std::hex << static_cast<uint32_t>(c);
  }
  for (const char32_t c : {U' ', U'-', U'\u2019', U'\u0378'}) {
    EXPECT_FALSE(IsWordChar(c)) << std::hex << static_cast<uint32_t>(c);
  }
}

}  // namespace
}  // namespace encoderd::unicode
