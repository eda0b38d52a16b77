#include "engine/base/error.h"

#include <gtest/gtest.h>

namespace encoderd {
namespace {

TEST(ErrorTest, CarriesItsDetail) {
  const absl::Status status =
      MakeError(absl::StatusCode::kInvalidArgument, "9 tokens; at most 8",
                {"INPUT_TOO_LONG", {{"a", "9"}, {"b", "8"}}, "inputs[3].text"});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "9 tokens; at most 8");
  const auto detail = GetErrorDetail(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, "INPUT_TOO_LONG");
  EXPECT_EQ(detail->field, "inputs[3].text");
  EXPECT_EQ(detail->metadata,
            (std::map<std::string, std::string>{{"a", "9"}, {"b", "8"}}));
}

TEST(ErrorTest, KeepsEmptyPartsEmpty) {
  const auto detail = GetErrorDetail(MakeError(absl::StatusCode::kUnavailable,
                                               "loading", {"LOADING", {}, ""}));
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, "LOADING");
  EXPECT_TRUE(detail->metadata.empty());
  EXPECT_TRUE(detail->field.empty());
}

TEST(ErrorTest, CannotBeBrokenByTabsAndLines) {
  const auto detail = GetErrorDetail(MakeError(
      absl::StatusCode::kNotFound, "x", {"R", {{"name", "a\tb\nc\td"}}, "f"}));
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->metadata,
            (std::map<std::string, std::string>{{"name", "a b c d"}}));
}

TEST(ErrorTest, IsAbsentFromOtherStatuses) {
  EXPECT_FALSE(GetErrorDetail(absl::OkStatus()).has_value());
  EXPECT_FALSE(GetErrorDetail(absl::InternalError("x")).has_value());
}

}  // namespace
}  // namespace encoderd
