#include "server/api/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"

namespace encoderd {
namespace {

ModelConfig WithPrompts(const std::string& default_name) {
  ModelConfig config;
  config.prompts = {{"query", "q: "}, {"passage", "p: "}, {"plain", ""}};
  config.default_prompt_name = default_name;
  return config;
}

TEST(OptionsTest, AskedForNoPromptAModelUsesItsDefaultOne) {
  EXPECT_EQ(*FindPrompt("f", WithPrompts("query"), ""), "q: ");
  EXPECT_EQ(*FindPrompt("f", WithPrompts("plain"), ""), "");
  EXPECT_EQ(*FindPrompt("f", WithPrompts(""), ""), "");
}

TEST(OptionsTest, APromptAskedForReplacesTheDefaultOne) {
  EXPECT_EQ(*FindPrompt("f", WithPrompts("query"), "passage"), "p: ");
  EXPECT_EQ(*FindPrompt("f", WithPrompts("query"), "plain"), "");
}

TEST(OptionsTest, AnUnknownPromptNamesThoseThatThereAre) {
  const auto prompt = FindPrompt("f", WithPrompts("query"), "nope");
  EXPECT_EQ(prompt.status().code(), absl::StatusCode::kNotFound);
  const auto detail = GetErrorDetail(prompt.status());
  EXPECT_EQ(detail->reason, "PROMPT_NOT_FOUND");
  EXPECT_EQ(detail->metadata.at("available"), "passage, plain, query");
  EXPECT_EQ(detail->field, "f");
}

// A refusal, with the field that it names.
void ExpectBadOption(const absl::Status& status, const std::string& field,
                     const std::string& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), field + " " + message);
  const auto detail = GetErrorDetail(status);
  ASSERT_TRUE(detail.has_value()) << status;
  EXPECT_EQ(detail->reason, "INVALID_OPTION");
  EXPECT_EQ(detail->field, field);
}

TEST(OptionsTest, EachChoiceMeansItsOwn) {
  const std::vector<std::pair<PoolingChoice, Pooling>> poolings = {
      {PoolingChoice::kUnset, Pooling::kMax},
      {PoolingChoice::kCls, Pooling::kCls},
      {PoolingChoice::kMean, Pooling::kMean},
      {PoolingChoice::kMax, Pooling::kMax},
      {PoolingChoice::kMeanSqrtLen, Pooling::kMeanSqrtLen},
      {PoolingChoice::kWeightedMean, Pooling::kWeightedMean},
      {PoolingChoice::kLastToken, Pooling::kLastToken}};
  for (const auto& [choice, pooling] : poolings) {
    EXPECT_EQ(*ToPooling("f", choice, Pooling::kMax), pooling);
  }
  const std::vector<std::pair<EncodingChoice, VectorFormat>> formats = {
      {EncodingChoice::kUnset, VectorFormat::kFloat32},
      {EncodingChoice::kFloat32, VectorFormat::kFloat32},
      {EncodingChoice::kFloat16, VectorFormat::kFloat16},
      {EncodingChoice::kInt8, VectorFormat::kInt8},
      {EncodingChoice::kUint8, VectorFormat::kUint8},
      {EncodingChoice::kBinary, VectorFormat::kBinary},
      {EncodingChoice::kUbinary, VectorFormat::kUbinary}};
  for (const auto& [choice, format] : formats) {
    EXPECT_EQ(*ToFormat("f", choice), format);
  }
  const std::vector<std::pair<TruncateChoice, TruncateMode>> cuts = {
      {TruncateChoice::kUnset, TruncateMode::kNone},
      {TruncateChoice::kNone, TruncateMode::kNone},
      {TruncateChoice::kStart, TruncateMode::kStart},
      {TruncateChoice::kEnd, TruncateMode::kEnd}};
  for (const auto& [choice, mode] : cuts) {
    EXPECT_EQ(*ToTruncate("f", choice), mode);
  }
}

TEST(OptionsTest, AChoiceBeyondTheKnownOnesIsRefused) {
  ExpectBadOption(
      ToPooling("f", static_cast<PoolingChoice>(7), Pooling::kCls).status(),
      "f", "is 7; this server knows 0 to 6");
  ExpectBadOption(ToFormat("f", static_cast<EncodingChoice>(7)).status(), "f",
                  "is 7; this server knows 0 to 6");
  ExpectBadOption(ToTruncate("f", static_cast<TruncateChoice>(-1)).status(),
                  "f", "is -1; this server knows 0 to 3");
}

TEST(OptionsTest, WindowsShareAtMostHalfOfWhatTheyHaveOfTheText) {
  constexpr auto kNone = TruncateMode::kNone;
  EXPECT_EQ(*ToWindows("w", std::nullopt, kNone, 8, 2), std::nullopt);
  EXPECT_EQ(*ToWindows("w", 0, kNone, 8, 2), 0);
  EXPECT_EQ(*ToWindows("w", 3, kNone, 8, 2), 3);
  EXPECT_EQ(*ToWindows("w", 3, kNone, 9, 2), 3);
  ExpectBadOption(ToWindows("w", 4, kNone, 8, 2).status(), "w.overlap",
                  "is 4; windows share at most 3 tokens, half of max_len less "
                  "the special tokens");
  ExpectBadOption(ToWindows("w", 1, kNone, 2, 2).status(), "w.overlap",
                  "is 1; windows share at most 0 tokens, half of max_len less "
                  "the special tokens");
}

TEST(OptionsTest, ATextIsEitherCutOrComputedInWindows) {
  ExpectBadOption(ToWindows("w", 1, TruncateMode::kStart, 8, 2).status(), "w",
                  "are set together with TRUNCATE_START; a long text is either "
                  "truncated or computed in windows: set one of them");
  ExpectBadOption(ToWindows("w", 1, TruncateMode::kEnd, 8, 2).status(), "w",
                  "are set together with TRUNCATE_END; a long text is either "
                  "truncated or computed in windows: set one of them");
  EXPECT_EQ(*ToWindows("w", std::nullopt, TruncateMode::kEnd, 8, 2),
            std::nullopt);
}

TEST(OptionsTest, NoDimensionsAreAllOfThem) {
  EXPECT_EQ(*ToDimensions("f", 0, 8), 8);
  EXPECT_EQ(*ToDimensions("f", 1, 8), 1);
  EXPECT_EQ(*ToDimensions("f", 8, 8), 8);
  ExpectBadOption(ToDimensions("f", 9, 8).status(), "f",
                  "is 9; this model has 8");
  ExpectBadOption(ToDimensions("f", 0xFFFFFFFF, 8).status(), "f",
                  "is 4294967295; this model has 8");
}

absl::Status Ranges(std::vector<float> minimum, std::vector<float> maximum) {
  return ToRanges("r", RangeLists{std::move(minimum), std::move(maximum)},
                  EncodingChoice::kInt8, VectorFormat::kInt8, 2)
      .status();
}

TEST(OptionsTest, RangesAreTwoFiniteBoundsForEachDimension) {
  EXPECT_TRUE(Ranges({-1, 0}, {1, 2}).ok());
  ExpectBadOption(Ranges({-1}, {1, 2}), "r.minimum",
                  "has 1 values; the answer has 2 dimensions");
  ExpectBadOption(Ranges({-1, 0}, {1, 2, 3}), "r.maximum",
                  "has 3 values; the answer has 2 dimensions");
  ExpectBadOption(Ranges({-1, std::nanf("")}, {1, 2}), "r.minimum[1]",
                  "is nan; must be finite");
  ExpectBadOption(Ranges({-1, 2}, {1, 2}), "r.maximum[1]",
                  "is 2; it must be above the minimum, 2");
  const auto metadata = GetErrorDetail(Ranges({-1, 2}, {1, 2}))->metadata;
  EXPECT_EQ(metadata.at("index"), "1");
  EXPECT_EQ(metadata.at("value"), "2");
  EXPECT_EQ(metadata.at("limit"), "2");
  constexpr float kMost = std::numeric_limits<float>::max();
  EXPECT_EQ(GetErrorDetail(Ranges({-kMost, 0}, {kMost, 1}))->field,
            "r.maximum[0]");
}

TEST(OptionsTest, OnlyFormatsOfBytesHaveRanges) {
  const RangeLists asked{{-1}, {1}};
  EXPECT_TRUE(ToRanges("r", std::nullopt, EncodingChoice::kFloat16,
                       VectorFormat::kFloat16, 1)
                  .ok());
  EXPECT_TRUE(
      ToRanges("r", asked, EncodingChoice::kUint8, VectorFormat::kUint8, 1)
          .ok());
  const auto refused = [&](EncodingChoice choice) {
    return ToRanges("r", asked, choice, VectorFormat::kFloat32, 1).status();
  };
  ExpectBadOption(refused(EncodingChoice::kUnset), "r",
                  "are set without an encoding; only INT8 and UINT8 have "
                  "ranges");
  // Not the contract's: the number, nothing beyond the table of names.
  for (const int unknown : {-1, 7}) {
    ExpectBadOption(refused(static_cast<EncodingChoice>(unknown)), "r",
                    "are set with " + std::to_string(unknown) +
                        "; only INT8 and UINT8 have ranges");
  }
}

}  // namespace
}  // namespace encoderd
