#include "server/api/inputs.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "engine/base/error.h"

namespace encoderd {
namespace {

IdLimits Limits() {
  IdLimits limits;
  limits.token_rows = 10;
  limits.segment_rows = 2;
  limits.position_rows = limits.max_len = 4;
  return limits;
}

TokenSequence Ids(std::vector<int32_t> ids) {
  TokenSequence sequence;
  sequence.token_ids = std::move(ids);
  return sequence;
}

ErrorDetail DetailOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return GetErrorDetail(status).value_or(ErrorDetail());
}

absl::Status Check(std::vector<Input> inputs) {
  return CheckInputs({"", Limits(), false}, &inputs);
}

TEST(InputsTest, ARequestHasAtLeastOneInputAndAtMostTheLimit) {
  RequestLimits limits;
  limits.max_inputs = 2;
  EXPECT_EQ(DetailOf(CheckInputCount(0, limits)).reason, "NO_INPUTS");
  EXPECT_TRUE(CheckInputCount(1, limits).ok());
  EXPECT_TRUE(CheckInputCount(2, limits).ok());
  const ErrorDetail detail = DetailOf(CheckInputCount(3, limits));
  EXPECT_EQ(detail.reason, "TOO_MANY_INPUTS");
  EXPECT_EQ(detail.metadata.at("count"), "3");
  EXPECT_EQ(detail.metadata.at("limit"), "2");
}

TEST(InputsTest, PutsThePromptBeforeEachTextAndNothingElse) {
  std::vector<Input> inputs = {TextInput{"a"}, PairInput{"b", ""}, Ids({1, 2})};
  ASSERT_TRUE(CheckInputs({"p: ", Limits(), false}, &inputs).ok());
  EXPECT_EQ(std::get<TextInput>(inputs[0]).text, "p: a");
  EXPECT_EQ(std::get<PairInput>(inputs[1]).first, "b");
  EXPECT_EQ(std::get<TokenSequence>(inputs[2]).token_ids,
            (std::vector<int32_t>{1, 2}));
}

TEST(InputsTest, NamesAnIdAsItWasSent) {
  const absl::Status status = Check({TextInput{"a"}, Ids({1, -1})});
  EXPECT_EQ(status.message(),
            "inputs[1]: token id 4294967295 at index 1 is outside the token "
            "table of 10 rows; ids are below 10");
  const ErrorDetail detail = DetailOf(status);
  EXPECT_EQ(detail.reason, "TOKEN_ID_OUT_OF_RANGE");
  EXPECT_EQ(detail.metadata.at("id"), "4294967295");
  EXPECT_EQ(detail.field, "inputs[1].tokens.ids");
}

TEST(InputsTest, ListsEveryInputAtFault) {
  const ErrorDetail detail =
      DetailOf(Check({TextInput{""}, TextInput{"fine"}, Ids({}), Ids({10})}));
  EXPECT_EQ(detail.reason, "EMPTY_INPUT");
  ASSERT_EQ(detail.violations.size(), 3u);
  EXPECT_EQ(detail.violations[0].field, "inputs[0].text");
  EXPECT_EQ(detail.violations[1].field, "inputs[2].tokens.ids");
  EXPECT_EQ(detail.violations[2].field, "inputs[3].tokens.ids");
}

TEST(InputsTest, NeverCutsTokenIds) {
  const ErrorDetail detail = DetailOf(Check({Ids({1, 2, 3, 4, 5})}));
  EXPECT_EQ(detail.reason, "INPUT_TOO_LONG");
  EXPECT_EQ(detail.field, "inputs[0].tokens.ids");
}

TEST(InputsTest, ARefusedListKeepsNoIds) {
  std::vector<Input> inputs = {Ids(std::vector<int32_t>(100000, 1))};
  ASSERT_GT(InputBytes(inputs[0]), 400000);
  ASSERT_TRUE(CheckInputs({"", Limits(), true}, &inputs).ok());
  EXPECT_EQ(DetailOf(std::get<RefusedInput>(inputs[0]).error).reason,
            "INPUT_TOO_LONG");
  EXPECT_EQ(InputBytes(inputs[0]), static_cast<int64_t>(sizeof(Input)));
}

TEST(InputsTest, WithErrorsPerInputTheOthersStay) {
  std::vector<Input> inputs = {TextInput{"a"}, Ids({10}),
                               RefusedInput{absl::DataLossError("before")}};
  ASSERT_TRUE(CheckInputs({"", Limits(), true}, &inputs).ok());
  EXPECT_EQ(std::get<TextInput>(inputs[0]).text, "a");
  EXPECT_EQ(DetailOf(std::get<RefusedInput>(inputs[1]).error).field,
            "inputs[1].tokens.ids");
  EXPECT_EQ(std::get<RefusedInput>(inputs[2]).error,
            absl::DataLossError("before"));
}

TEST(InputsTest, WithErrorsPerInputARefusedListKeepsItsTokenCount) {
  std::vector<Input> inputs = {Ids({1, 2, 3, 4, 5}), Ids({1, 10}), Ids({}),
                               TextInput{""}};
  ASSERT_TRUE(CheckInputs({"", Limits(), true}, &inputs).ok());
  EXPECT_EQ(std::get<RefusedInput>(inputs[0]).token_count, 5);
  EXPECT_EQ(std::get<RefusedInput>(inputs[1]).token_count, 2);
  EXPECT_EQ(std::get<RefusedInput>(inputs[2]).token_count, 0);
  EXPECT_EQ(std::get<RefusedInput>(inputs[3]).token_count, 0);
}

TEST(InputsTest, AnIncompleteRefusalGetsItsPlace) {
  const RefusedInput refused{EmptyInputError("the input has no content"), 0,
                             false};
  std::vector<Input> inputs = {TextInput{"a"}, refused};
  const absl::Status status = Check(inputs);
  EXPECT_EQ(status.message(), "inputs[1] has no content");
  EXPECT_EQ(DetailOf(status).field, "inputs[1]");
  ASSERT_TRUE(CheckInputs({"", Limits(), true}, &inputs).ok());
  EXPECT_TRUE(std::get<RefusedInput>(inputs[1]).complete);
  EXPECT_EQ(std::get<RefusedInput>(inputs[1]).error, status);
}

TEST(InputsTest, ErrorsThatNoAnswerHasRoomForAreNotBuilt) {
  const InputRules rules = {"", Limits(), true, 3 * kLeastErrorBytes};
  std::vector<Input> three(3, TextInput{""});
  EXPECT_TRUE(CheckInputs(rules, &three).ok());
  std::vector<Input> many(1000, TextInput{""});
  const ErrorDetail detail = DetailOf(CheckInputs(rules, &many));
  EXPECT_EQ(detail.reason, "REQUEST_TOO_LARGE");
  EXPECT_EQ(detail.field, "inputs");
  EXPECT_EQ(detail.metadata.at("reply_bytes"),
            std::to_string(4 * kLeastErrorBytes));
  EXPECT_TRUE(std::holds_alternative<TextInput>(many[3]));
}

TEST(InputsTest, AfterTheFirstFaultsTheOthersAreOnlyCounted) {
  const ErrorDetail detail =
      DetailOf(Check(std::vector<Input>(1000, TextInput{""})));
  EXPECT_EQ(detail.violations.size(), static_cast<size_t>(kMaxViolations));
  EXPECT_EQ(detail.metadata.at("more_inputs"), "999");
  EXPECT_EQ(detail.metadata.at("omitted_violations"),
            std::to_string(1000 - kMaxViolations));
}

}  // namespace
}  // namespace encoderd
