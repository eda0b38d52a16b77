// The words of --device.
#include "engine/device/device_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace encoderd {
namespace {

using Kind = DeviceChoice::Kind;

TEST(DeviceWordsTest, NamesOneDeviceOrSeveralCards) {
  const struct {
    const char* words;
    Kind kind;
    std::vector<int32_t> cards;
  } kCases[] = {
      {"auto", Kind::kAuto, {}},
      {"cpu", Kind::kCpu, {}},
      {"cuda", Kind::kCards, {0}},
      {"cuda:all", Kind::kCards, {}},
      {"cuda:3", Kind::kCards, {3}},
      {"cuda:2,cuda:0,cuda:10", Kind::kCards, {2, 0, 10}},
  };
  for (const auto& test : kCases) {
    const auto choice = ParseDevice(test.words);
    ASSERT_TRUE(choice.has_value()) << test.words;
    EXPECT_EQ(choice->kind, test.kind) << test.words;
    EXPECT_EQ(choice->cards, test.cards) << test.words;
  }
}

TEST(DeviceWordsTest, NamesTheInstructionsOfACpu) {
  for (const cpu::Isa isa : cpu::kIsas) {
    const std::string words = std::string("cpu:") + cpu::IsaName(isa);
    const auto choice = ParseDevice(words);
    ASSERT_TRUE(choice.has_value()) << words;
    EXPECT_EQ(choice->kind, Kind::kCpu) << words;
    EXPECT_EQ(choice->isa, isa) << words;
    EXPECT_THAT(kDeviceWords, testing::HasSubstr(words));
  }
  EXPECT_FALSE(ParseDevice("cpu")->isa.has_value());
}

TEST(DeviceWordsTest, KnowsNoOtherWords) {
  for (const std::string words : {"",
                                  "tpu",
                                  "CPU",
                                  "cpu,cpu",
                                  "cpu:",
                                  "cpu:sse9",
                                  "cpu:0",
                                  "cuda:",
                                  "cuda:x",
                                  "cuda:-1",
                                  "cuda:+1",
                                  "cuda: 1",
                                  "cuda:1 ",
                                  "cuda:0,",
                                  ",cuda:0",
                                  "cuda:0,cpu",
                                  "cuda,cuda:1",
                                  "cuda:all,cuda:0",
                                  "cuda:0,1",
                                  "cuda:2147483648"}) {
    EXPECT_FALSE(ParseDevice(words).has_value()) << words;
  }
}

}  // namespace
}  // namespace encoderd
