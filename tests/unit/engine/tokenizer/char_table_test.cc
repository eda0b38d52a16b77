#include "engine/tokenizer/wordpiece/char_table.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/base/utf8.h"
#include "engine/tokenizer/unicode/unicode_rules.h"

namespace encoderd {
namespace {

// The table and BertNormalize() must say the same of every code point, and what
// the buffers of TextEncoder count on must hold: a character never becomes more
// tokens than it has bytes, nor more than three times its bytes.
void CheckEveryCodePoint(const BertNormalizerOptions& options) {
  absl::StatusOr<WordPiece> words = WordPiece::Build({"[UNK]", "a", ","}, {});
  ASSERT_TRUE(words.ok());
  const CharTable table = CharTable::Build(options, *words);
  std::vector<NormalChar> normal;
  for (char32_t c = 0; c < unicode::kCodePoints; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string source;
    utf8::Append(c, &source);
    BertNormalize(source, 0, options, &normal);
    const bool isolated = options.handle_chinese_chars && unicode::IsCjk(c);
    if (isolated) {
      ASSERT_GE(normal.size(), 3u);
      normal = {normal.begin() + 1, normal.end() - 1};
    }
    std::string text;
    int signs = 0, spaces = 0;
    for (const NormalChar& x : normal) {
      utf8::Append(x.c, &text);
      signs += unicode::IsPunctuation(x.c);
      spaces += unicode::IsSpace(x.c);
    }
    ASSERT_LE(normal.size(), source.size()) << std::hex << uint32_t{c};
    ASSERT_LE(text.size(), 3 * source.size()) << std::hex << uint32_t{c};
    const CharTable::Entry entry = table[c];
    switch (entry.kind()) {
      case CharTable::kCopy:
        ASSERT_EQ(text, source) << std::hex << uint32_t{c};
        ASSERT_EQ(signs + spaces, 0) << std::hex << uint32_t{c};
        ASSERT_FALSE(isolated);
        break;
      case CharTable::kDrop:
        ASSERT_EQ(text, "") << std::hex << uint32_t{c};
        break;
      case CharTable::kMap: {
        const auto& replacement = table.replacement(entry.payload());
        ASSERT_EQ(text, std::string(replacement.text, replacement.bytes));
        ASSERT_EQ(normal.size(), replacement.chars);
        ASSERT_EQ(signs + spaces, 0) << std::hex << uint32_t{c};
        break;
      }
      case CharTable::kHangul: {
        char jamo[9];
        ASSERT_EQ(text, std::string(jamo, 3 * DecomposeHangul(c, jamo)));
        break;
      }
      case CharTable::kSpace:
        ASSERT_TRUE(normal.size() == 1 && spaces == 1)
            << std::hex << uint32_t{c};
        break;
      case CharTable::kToken:
        ASSERT_TRUE(normal.size() == 1 && (signs == 1 || isolated));
        break;
      case CharTable::kMark:  // BertNormalize() is asked again while encoding
        ASSERT_TRUE(options.strip_accents) << std::hex << uint32_t{c};
        break;
    }
  }
}

TEST(CharTableTest, AgreesWithTheNormalizerOnEveryCodePoint) {
  for (int switches = 0; switches < 16; ++switches) {
    SCOPED_TRACE(switches);
    CheckEveryCodePoint({(switches & 1) != 0, (switches & 2) != 0,
                         (switches & 4) != 0, (switches & 8) != 0});
    if (HasFatalFailure()) return;
  }
}

TEST(CharTableTest, NoCapitalIsMissedAboveTheBoundOfTheShortcut) {
  std::u32string lower;
  for (char32_t c = unicode::kNoNewCapitals; c < unicode::kCodePoints; ++c) {
    lower.clear();
    unicode::AppendLower(c, &lower);
    ASSERT_EQ(lower, std::u32string(1, c));
  }
}

}  // namespace
}  // namespace encoderd
