#include "engine/checkpoint/positions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/checkpoint/max_len.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

using testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// The formula as it is written, in long double.
long double Formula(int64_t position, int64_t h, int64_t size) {
  const int64_t pair = h / 2;
  const long double angle =
      static_cast<long double>(position) /
      std::pow(10000.0L, 2.0L * static_cast<long double>(pair) /
                             static_cast<long double>(size));
  return h % 2 == 0 ? std::sin(angle) : std::cos(angle);
}

TEST(PositionsTest, SinusoidalRowsEqualTheFormulaToAMillionth) {
  for (int64_t size : {1, 2, 39, 64, 384, 1024}) {
    for (int64_t position : {0, 1, 2, 100, 511, 512, 8191, 65535}) {
      std::vector<float> row(size);
      SinusoidalRow(position, size, row.data());
      for (int64_t h = 0; h < size; ++h) {
        ASSERT_NEAR(row[h], Formula(position, h, size), 1e-6)
            << position << " " << h << " of " << size;
      }
    }
  }
}

TEST(PositionsTest, SinusoidalRowsHaveTheLengthOfTheirSineCosinePairs) {
  const auto table = SinusoidalPositions().Rows(300, 64, nullptr);
  ASSERT_THAT(table, IsOk());
  const HostMatrix rows = table->Widened();
  ASSERT_EQ(rows.rows, 300);
  ASSERT_EQ(rows.cols, 64);
  for (int64_t p = 0; p < 300; ++p) {
    double square = 0;
    for (int64_t h = 0; h < 64; ++h) {
      square += double{rows.Row(p)[h]} * rows.Row(p)[h];
    }
    ASSERT_NEAR(square, 32, 1e-5) << p;
  }
}

// As MPNetEncoder.relative_position_bucket of transformers gives them.
TEST(PositionsTest, RelativeBucketsBeginWhereTheReferenceHasThem) {
  const std::vector<int64_t> begins = {0, 1,  2,  3,  4,  5,  6,  7,
                                       8, 12, 16, 23, 32, 46, 64, 91};
  for (int32_t bucket = 0; bucket < 16; ++bucket) {
    const int64_t end = bucket == 15 ? 100000 : begins[bucket + 1];
    for (int64_t far = begins[bucket]; far < end; ++far) {
      ASSERT_EQ(RelativeBucket(-far), bucket) << far;
      if (far == 0) continue;
      ASSERT_EQ(RelativeBucket(far), 16 + bucket) << far;
    }
  }
}

TEST(PositionsTest, BiasesAreTheTablesRowsByDistance) {
  HostMatrix table = {kRelativeBuckets, 2, {}};
  for (int32_t bucket = 0; bucket < kRelativeBuckets; ++bucket) {
    table.data.push_back(static_cast<float>(bucket));
    table.data.push_back(static_cast<float>(100 + bucket));
  }
  ASSERT_TRUE(RelativeBiasPositions().biases_attention());
  const HostMatrix biases = RelativeBiasPositions().Biases(table, 2, 3);
  EXPECT_EQ(biases.rows, 2);
  EXPECT_EQ(biases.cols, 5);
  EXPECT_THAT(biases.data,
              testing::ElementsAre(2, 1, 0, 17, 18, 102, 101, 100, 117, 118));
  EXPECT_EQ(RelativeBiasPositions().Biases(table, 2, 1).cols, 1);
  EXPECT_FALSE(LearnedPositions().biases_attention());
  EXPECT_FALSE(SinusoidalPositions().biases_attention());
}

TEST(PositionsTest, ALearnedTableIsReadAndItsErrorsPassedOn) {
  const HostMatrix table = {2, 2, {1, 2, 3, 4}};
  const auto rows = LearnedPositions().Rows(2, 2, [&] { return table; });
  ASSERT_THAT(rows, IsOk());
  EXPECT_EQ(rows->floats, table.data);
  EXPECT_THAT(LearnedPositions().Rows(2, 2,
                                      []() -> absl::StatusOr<HostTable> {
                                        return absl::DataLossError("torn");
                                      }),
              IsError(kDataLoss, "torn"));
}

TEST(PositionsTest, SchemesAreFoundByTheWordOfTheConfig) {
  EXPECT_EQ(FindPositionScheme("absolute"), &LearnedPositions());
  EXPECT_EQ(FindPositionScheme("sinusoidal"), &SinusoidalPositions());
  EXPECT_EQ(FindPositionScheme("rope"), nullptr);
  EXPECT_EQ(SupportedPositionSchemes(), "absolute, sinusoidal");
  EXPECT_TRUE(LearnedPositions().has_table());
  EXPECT_FALSE(SinusoidalPositions().has_table());
}

// Without a table the claim of config.json counts only when nothing else does.
TEST(MaxLenTest, GeneratedRowsTakeTheLimitOfTheOtherFiles) {
  LengthLimits limits = {.table = 512,
                         .table_bounds = false,
                         .max_seq_length = 2048,
                         .model_max_length = 1024};
  auto chosen = ChooseMaxLen(limits);
  ASSERT_THAT(chosen, IsOk());
  EXPECT_EQ(chosen->tokens, 1024);
  EXPECT_EQ(chosen->source, MaxLenSource::kTokenizer);
  ASSERT_EQ(chosen->notes.size(), 1u);
  EXPECT_EQ(chosen->notes[0],
            "model_max_length 1024 is the limit; sentence-transformers would "
            "cut texts at its max_seq_length 2048");
  limits.flag = 512;
  chosen = ChooseMaxLen(limits);
  ASSERT_THAT(chosen, IsOk());
  EXPECT_TRUE(chosen->notes.empty());
  limits.flag = 0;
  limits.model_max_length = 0;
  chosen = ChooseMaxLen(limits);
  ASSERT_THAT(chosen, IsOk());
  EXPECT_TRUE(chosen->notes.empty());
  EXPECT_EQ(chosen->tokens, 2048);
  EXPECT_EQ(chosen->source, MaxLenSource::kSentenceTransformers);
  limits.max_seq_length = 0;
  chosen = ChooseMaxLen(limits);
  ASSERT_THAT(chosen, IsOk());
  EXPECT_EQ(chosen->tokens, 512);
  EXPECT_EQ(chosen->source, MaxLenSource::kPositionTable);
}

TEST(MaxLenTest, WithoutATableTheModelIsBoundByWhatItWasTrainedFor) {
  LengthLimits limits = {
      .table = 8192, .is_table = false, .model_max_length = 512};
  auto chosen = ChooseMaxLen(limits);
  ASSERT_THAT(chosen, IsOk());
  EXPECT_EQ(chosen->tokens, 512);
  limits.model_max_length = 0;
  chosen = ChooseMaxLen(limits);
  ASSERT_THAT(chosen, IsOk());
  EXPECT_EQ(chosen->tokens, 8192);
  EXPECT_EQ(chosen->source, MaxLenSource::kMaxPositions);
  limits.flag = 8193;
  EXPECT_THAT(ChooseMaxLen(limits),
              IsError(kInvalidArgument,
                      "max_len is 8193; the model was trained for 1 to 8192"));
  limits = {.table = 7999, .is_table = false, .max_seq_length = 8192};
  chosen = ChooseMaxLen(limits);
  ASSERT_THAT(chosen, IsOk());
  EXPECT_EQ(chosen->tokens, 7999);
  EXPECT_EQ(chosen->source, MaxLenSource::kMaxPositions);
  EXPECT_THAT(chosen->notes,
              testing::ElementsAre("max_seq_length 8192 is ignored: the model "
                                   "was trained for 7999 tokens"));
  limits = {.table = 1 << 20, .is_table = false};
  EXPECT_THAT(ChooseMaxLen(limits),
              IsError(kInvalidArgument, "at most 65536: set max_len"));
  limits.flag = 65536;
  EXPECT_THAT(ChooseMaxLen(limits), IsOk());
  limits.flag = 65537;
  EXPECT_THAT(ChooseMaxLen(limits),
              IsError(kInvalidArgument,
                      "max_len is 65537; position rows are generated for 1 to "
                      "65536 tokens"));
}

TEST(MaxLenTest, TheFlagRaisesGeneratedRowsPastWhatTheFilesSayAndNotesIt) {
  const auto chosen = ChooseMaxLen(
      {.table_bounds = false, .max_seq_length = 256, .flag = 4096});
  ASSERT_THAT(chosen, IsOk());
  EXPECT_EQ(chosen->tokens, 4096);
  EXPECT_EQ(chosen->source, MaxLenSource::kFlag);
  EXPECT_THAT(chosen->notes,
              testing::ElementsAre(HasSubstr("exceeds the model's limit of "
                                             "256")));
}

TEST(MaxLenTest, RefusesToGuessALimitThatNobodySays) {
  EXPECT_THAT(ChooseMaxLen({.table_bounds = false}),
              IsError(kInvalidArgument, "set max_len"));
  EXPECT_THAT(ChooseMaxLen({.table_bounds = false, .flag = 77}), IsOk());
}

TEST(MaxLenTest, RefusesMoreGeneratedRowsThanItsBound) {
  EXPECT_THAT(
      ChooseMaxLen({.table_bounds = false, .flag = kMaxGeneratedRows + 1}),
      IsError(kInvalidArgument, "max_len is 65537"));
  EXPECT_THAT(
      ChooseMaxLen({.table_bounds = false, .model_max_length = 1000000}),
      IsError(kInvalidArgument, "allow 1000000 tokens (tokenizer)"));
}

TEST(MaxLenTest, AStoredTableBoundsTheFlag) {
  EXPECT_THAT(ChooseMaxLen({.table = 512, .flag = 513}),
              IsError(kInvalidArgument, "rows for 1 to 512 tokens"));
  EXPECT_EQ(ChooseMaxLen({.table = 512, .max_seq_length = 513})->tokens, 512);
}

}  // namespace
}  // namespace encoderd
