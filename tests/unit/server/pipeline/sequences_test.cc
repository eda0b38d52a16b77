#include "server/pipeline/sequences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace encoderd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr WindowRule kWindows{/*max_len=*/5, /*special_tokens=*/2,
                              /*overlap=*/1};

TokenizedInput Ids(std::vector<int32_t> ids) {
  TokenizedInput input;
  input.tokens = input.token_count = static_cast<int64_t>(ids.size());
  input.sequence.token_ids = std::move(ids);
  return input;
}

// Five tokens between two special ones.
TokenizedInput LongText() {
  TokenizedInput input = Ids({1, 11, 12, 13, 14, 15, 2});
  input.text_begin = 1;
  input.text_tokens = 5;
  input.windows = CountWindows(kWindows, input.text_tokens);
  return input;
}

TokenizedInput Refused() {
  TokenizedInput input;
  input.status = absl::InvalidArgumentError("refused");
  return input;
}

PipelineRequest Request(bool normalize) {
  PipelineRequest request;
  request.output.normalize = normalize;
  request.errors_per_input = true;
  return request;
}

TEST(SequencesTest, ALongTextIsOneForEachWindowAndAnInputAtFaultNone) {
  Sequences sequences(Request(true));
  EXPECT_THAT(
      sequences.Start(kWindows, {Ids({1, 7, 2}), Refused(), LongText()}),
      ElementsAre(3, 5, 5));
  EXPECT_THAT(sequences.ids(0).token_ids, ElementsAre(1, 7, 2));
  EXPECT_THAT(sequences.ids(1).token_ids, ElementsAre(1, 11, 12, 13, 2));
  EXPECT_THAT(sequences.ids(2).token_ids, ElementsAre(1, 13, 14, 15, 2));
  EXPECT_TRUE(sequences.output(0).normalize);
  EXPECT_FALSE(sequences.output(1).normalize);  // the average will be
}

TEST(SequencesTest, JoinsWindowsToTheirAverageInTheOrderOfTheInputs) {
  Sequences sequences(Request(false));
  sequences.Start(kWindows, {LongText(), Refused(), Ids({1, 7, 2})});
  sequences.Deliver(2, {5, 6});
  sequences.Deliver(1, {0, 4});
  sequences.Deliver(0, {2, 0});
  const std::vector<InputResult> results = sequences.Join();
  ASSERT_EQ(results.size(), 3u);
  EXPECT_THAT(results[0].values, ElementsAre(1, 2));
  EXPECT_EQ(results[0].windows, 2);
  EXPECT_EQ(results[1].status.message(), "refused");
  EXPECT_THAT(results[2].values, ElementsAre(5, 6));
}

TEST(SequencesTest, AWindowThatFailsIsItsInputsErrorAlone) {
  Sequences sequences(Request(false));
  sequences.Start(kWindows, {LongText(), Ids({1, 7, 2})});
  sequences.Deliver(0, {2, 0});
  EXPECT_TRUE(sequences.Fail(1, absl::InternalError("broken")));
  EXPECT_TRUE(sequences.Fail(1, absl::InternalError("again")));
  sequences.Deliver(2, {5, 6});
  const std::vector<InputResult> results = sequences.Join();
  EXPECT_EQ(results[0].status.message(), "broken");
  EXPECT_THAT(results[0].values, IsEmpty());
  EXPECT_THAT(results[1].values, ElementsAre(5, 6));
}

TEST(SequencesTest, WithoutErrorsPerInputAFailureIsNotItsOwn) {
  Sequences sequences((PipelineRequest()));
  sequences.Start(kWindows, {Ids({1, 7, 2})});
  EXPECT_FALSE(sequences.Fail(0, absl::InternalError("broken")));
  EXPECT_TRUE(sequences.Join()[0].status.ok());
}

TEST(SequencesTest, OfStatesOnlyTheRowsAskedForAreKept) {
  PipelineRequest request;
  request.output.kind = SequenceOutput::Kind::kStates;
  request.without_special_tokens = true;
  Sequences sequences(request);
  TokenizedInput input = Ids({1, 7, 8, 2});
  input.span = {{1, 3}};
  sequences.Start(kWindows, {input});
  sequences.Deliver(0, {1, 1, 2, 2, 3, 3, 4, 4});
  const std::vector<InputResult> results = sequences.Join();
  EXPECT_EQ(results[0].rows, 2);
  EXPECT_THAT(results[0].values, ElementsAre(2, 2, 3, 3));
}

}  // namespace
}  // namespace encoderd
