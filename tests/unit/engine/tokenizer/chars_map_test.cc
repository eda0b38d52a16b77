#include "engine/tokenizer/unigram/chars_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

constexpr auto kLoss = absl::StatusCode::kDataLoss;
constexpr uint32_t kHasValue = 1u << 8;
constexpr uint32_t kValue = 1u << 31;

std::string Pack(const std::vector<uint32_t>& units, const std::string& texts,
                 int32_t more_bytes = 0) {
  const auto bytes = static_cast<uint32_t>(4 * units.size() + more_bytes);
  std::string packed(4 + 4 * units.size(), '\0');
  std::memcpy(packed.data(), &bytes, 4);
  if (!units.empty()) {
    std::memcpy(packed.data() + 4, units.data(), 4 * units.size());
  }
  return packed + texts;
}

// Keys "a" (the value at 512) and "ab" (at 768); the root's children lie at
// 256 ^ byte.
std::vector<uint32_t> Units(uint32_t a_value, uint32_t ab_value) {
  std::vector<uint32_t> units(1024);
  units[0] = 256 << 10;
  const uint32_t a = 256 ^ 'a';
  units[a] = (a ^ 512) << 10 | kHasValue | 'a';
  units[512] = kValue | a_value;
  const uint32_t b = 512 ^ 'b';
  units[b] = (b ^ 768) << 10 | kHasValue | 'b';
  units[768] = kValue | ab_value;
  return units;
}

const std::string& Texts() {
  static const auto* const texts = new std::string("xy\0\xC3\xA9\0", 6);
  return *texts;
}

std::string Apply(const CharsMap& map, const std::string& text,
                  std::vector<std::pair<int, int>>* places = nullptr) {
  NormalText in, out;
  in.Assign(text, 0, places != nullptr);
  EXPECT_TRUE(map.Apply(in, &out));
  for (int32_t i = 0; places != nullptr && i < out.all().end; ++i) {
    const ByteOffset place = out.Place({i, i + 1});
    places->push_back({place.begin, place.end});
  }
  return std::string(out.text());
}

TEST(CharsMapTest, ReplacesByTheShortestKey) {
  const auto map = CharsMap::Parse(Pack(Units(0, 3), Texts()));
  ASSERT_THAT(map, IsOk());
  EXPECT_EQ(map->Find("ab"), "xy");
  EXPECT_EQ(map->Find("b"), std::nullopt);
  EXPECT_EQ(map->Find(""), std::nullopt);
  EXPECT_EQ(map->Find(absl::string_view("\0a", 2)), std::nullopt);
  EXPECT_EQ(Apply(*map, "cab"), "cxyb");
  // A short cluster is looked up as a whole: its mark goes with it.
  EXPECT_EQ(Apply(*map, "a\u0301c"), "xyc");
  // A long one character by character.
  EXPECT_EQ(Apply(*map, "a\u0301\u0301\u0301"), "xy\u0301\u0301\u0301");
}

TEST(CharsMapTest, WhatIsAddedStandsForWhatItReplaced) {
  const auto map = CharsMap::Parse(Pack(Units(0, 3), Texts()));
  ASSERT_THAT(map, IsOk());
  std::vector<std::pair<int, int>> places;
  EXPECT_EQ(Apply(*map, "ca\u00e9", &places), "cxy\u00e9");
  using P = std::pair<int, int>;
  EXPECT_THAT(places, ::testing::ElementsAre(P{0, 1}, P{1, 2}, P{1, 2}, P{2, 4},
                                             P{2, 4}));
}

TEST(CharsMapTest, RefusesMapsThatLeadAstray) {
  EXPECT_THAT(CharsMap::Parse(""), IsError(kLoss, "has 0 bytes"));
  EXPECT_THAT(CharsMap::Parse("\x01\x02\x03"), IsError(kLoss, "has 3 bytes"));
  EXPECT_THAT(CharsMap::Parse(Pack({}, "")), IsError(kLoss, "trie has 0"));
  EXPECT_THAT(CharsMap::Parse(Pack({1}, "ab", 1)),
              IsError(kLoss, "trie has 5 bytes; it must have a multiple of 4"));
  EXPECT_THAT(CharsMap::Parse(Pack({1}, "ab", 4)),
              IsError(kLoss, "up to the 6 that follow"));
  EXPECT_THAT(CharsMap::Parse(Pack(Units(0, 6), Texts())),
              IsError(kLoss, "points to byte 6 of a text of 6"));
  EXPECT_THAT(CharsMap::Parse(Pack(Units(4, 0), Texts())),
              IsError(kLoss, "points to byte 4 of a text of 6"));
  EXPECT_THAT(CharsMap::Parse(Pack(Units(0, 3), "\xFF")),
              IsError(kLoss, "not UTF-8 at byte 0"));
  // A key's value beyond the array; a cycle.
  std::vector<uint32_t> units = Units(0, 3);
  units.resize(700);
  EXPECT_THAT(CharsMap::Parse(Pack(units, Texts())),
              IsError(kLoss, "points to"));
  units = Units(0, 3);
  units[512 ^ 'b'] = ((512 ^ 'b') ^ 512) << 10 | 'b';
  EXPECT_THAT(CharsMap::Parse(Pack(units, Texts())), IsOk());
}

}  // namespace
}  // namespace encoderd
