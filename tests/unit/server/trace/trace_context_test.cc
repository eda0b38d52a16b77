#include "server/trace/trace_context.h"

#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace encoderd {
namespace {

using ::testing::ElementsAre;

constexpr char kIds[] = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";

std::string With(const std::string& version, const std::string& rest) {
  return version + "-" + kIds + "-" + rest;
}

TEST(TraceContextTest, ReadsIdsAndWhetherTheCallerRecords) {
  const auto context = ParseTraceparent(With("00", "01"));
  ASSERT_TRUE(context.has_value());
  EXPECT_THAT(context->trace_id,
              ElementsAre(0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84,
                          0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c));
  EXPECT_THAT(context->parent,
              ElementsAre(0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31));
  EXPECT_TRUE(context->sampled);
}

TEST(TraceContextTest, OnlyTheLowestFlagSaysThatTheCallerRecords) {
  EXPECT_FALSE(ParseTraceparent(With("00", "00"))->sampled);
  EXPECT_FALSE(ParseTraceparent(With("00", "fe"))->sampled);
  EXPECT_TRUE(ParseTraceparent(With("00", "ff"))->sampled);
}

TEST(TraceContextTest, ALaterVersionMayBeLonger) {
  EXPECT_TRUE(ParseTraceparent(With("01", "01")).has_value());
  EXPECT_TRUE(ParseTraceparent(With("cc", "01-more")).has_value());
  EXPECT_FALSE(ParseTraceparent(With("cc", "01more")).has_value());
  EXPECT_FALSE(ParseTraceparent(With("00", "01-more")).has_value());
  EXPECT_FALSE(ParseTraceparent(With("ff", "01")).has_value());
}

TEST(TraceContextTest, WhatIsNotOfTheFormIsNone) {
  const std::string good = With("00", "01");
  ASSERT_TRUE(ParseTraceparent(good).has_value());
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(ParseTraceparent(good.substr(0, length)).has_value())
        << length;
  }
  for (size_t place = 0; place < good.size(); ++place) {
    for (const char wrong : {'g', 'A', '_', ' ', '\0', '\xff'}) {
      std::string bad = good;
      bad[place] = wrong;
      EXPECT_FALSE(ParseTraceparent(bad).has_value()) << place << wrong;
    }
  }
}

TEST(TraceContextTest, IdsOfZeroAreNone) {
  const std::string trace(32, '0');
  const std::string span(16, '0');
  EXPECT_FALSE(
      ParseTraceparent("00-" + trace + "-b7ad6b7169203331-01").has_value());
  EXPECT_FALSE(
      ParseTraceparent("00-0af7651916cd43dd8448eb211c80319c-" + span + "-01")
          .has_value());
}

}  // namespace
}  // namespace encoderd
