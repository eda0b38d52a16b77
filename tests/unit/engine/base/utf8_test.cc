#include "engine/base/utf8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

namespace encoderd {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;

TEST(Utf8Test, EveryCodePointGoesThereAndBack) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string bytes;
    utf8::Append(c, &bytes);
    ASSERT_EQ(utf8::FindInvalid(bytes), std::nullopt);
    int length = 0;
    ASSERT_EQ(
        utf8::Decode(reinterpret_cast<const uint8_t*>(bytes.data()), &length),
        c);
    ASSERT_EQ(length, static_cast<int>(bytes.size()));
  }
}

TEST(Utf8Test, NamesTheFirstByteThatIsWrong) {
  const std::string wrong[] = {"\x80",      // continuation without a lead
                               "\xC0\x80",  // overlong
                               "\xC0\xAF",
                               "\xC3",          // cut short
                               "\xE0\x9F\x80",  // overlong
                               "\xE0\x80\xAF",
                               "\xED\xA0\x80",  // surrogate
                               "\xE2\x82",      // cut short
                               "\xF0\x9F\x98",
                               "\xF0\x8F\xBF\xBF",  // overlong
                               "\xF4\x90\x80\x80",  // over U+10FFFF
                               "\xF8\x88\x80\x80",
                               "\xF8\x88\x80\x80\x80",
                               "\xFF"};
  for (const std::string& bytes : wrong) {
    for (const size_t before : {0, 1, 15, 16, 17, 40}) {
      const std::string text = std::string(before, 'x') + bytes;
      EXPECT_EQ(utf8::FindInvalid(text), static_cast<int64_t>(before));
      EXPECT_EQ(utf8::FindInvalid(text + "and more text after it"),
                static_cast<int64_t>(before));
    }
  }
}

TEST(Utf8Test, VisitsEachCodePointWithItsBytes) {
  struct Visited {
    char32_t c;
    int32_t begin, end;
  };
  std::vector<Visited> visited;
  const auto visit = [&](char32_t c, int32_t begin, int32_t end) {
    visited.push_back({c, begin, end});
  };
  const std::string text = "a\u00e9\u4e2d\U0001f600";
  utf8::ForEach(text, visit);
  EXPECT_THAT(visited,
              ElementsAre(FieldsAre(U'a', 0, 1), FieldsAre(0xe9, 1, 3),
                          FieldsAre(0x4e2d, 3, 6), FieldsAre(0x1f600, 6, 10)));
  visited.clear();
  utf8::ForEach(text, 1, 6, visit);
  EXPECT_THAT(visited,
              ElementsAre(FieldsAre(0xe9, 1, 3), FieldsAre(0x4e2d, 3, 6)));
  utf8::ForEach("", visit);
  utf8::ForEach(text, 6, 6, visit);
  EXPECT_EQ(visited.size(), 2u);
}

TEST(Utf8Test, GoesBackByWholeCodePoints) {
  const std::string text = "a\u00e9\u4e2d";
  EXPECT_EQ(utf8::Previous(text, 6), 3);
  EXPECT_EQ(utf8::Previous(text, 3), 1);
  EXPECT_EQ(utf8::Previous(text, 1), 0);
}

TEST(Utf8Test, CutsBetweenCodePoints) {
  const std::string text = "a\u00e9\u4e2d\U0001f600";
  const size_t kept[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (size_t limit = 0; limit < std::size(kept); ++limit) {
    EXPECT_EQ(utf8::CutAtCharacter(text, limit), text.substr(0, kept[limit]));
  }
  EXPECT_EQ(utf8::CutAtCharacter("", 0), "");
  EXPECT_EQ(utf8::CutAtCharacter("abc", 2), "ab");
}

TEST(Utf8Test, CutsBytesThatAreNotUtf8WithinTheLimit) {
  EXPECT_EQ(utf8::CutAtCharacter("\x80\x80\x80", 2), "");
  EXPECT_EQ(utf8::CutAtCharacter("\xFF\xFF\xFF", 2), "\xFF\xFF");
}

}  // namespace
}  // namespace encoderd
