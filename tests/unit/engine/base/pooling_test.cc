#include "engine/base/pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace encoderd {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

constexpr Pooling kAll[] = {Pooling::kCls,          Pooling::kMean,
                            Pooling::kMax,          Pooling::kMeanSqrtLen,
                            Pooling::kWeightedMean, Pooling::kLastToken};

// Of three tokens of two values.
std::vector<float> PoolThree(Pooling pooling) {
  const std::vector<float> states = {1, -6, 4, 0, 2.5, 3};
  std::vector<float> out(2);
  PoolStates(pooling, states.data(), 3, 2, out.data());
  return out;
}

TEST(PoolingTest, TakesTheFirstOrTheLastToken) {
  EXPECT_THAT(PoolThree(Pooling::kCls), ElementsAre(1, -6));
  EXPECT_THAT(PoolThree(Pooling::kLastToken), ElementsAre(2.5f, 3));
}

TEST(PoolingTest, NamesTheRowThatIsTheVector) {
  EXPECT_EQ(PooledRow(Pooling::kCls, 3), 0);
  EXPECT_EQ(PooledRow(Pooling::kLastToken, 3), 2);
  EXPECT_EQ(PooledRow(Pooling::kLastToken, 1), 0);
  for (const Pooling pooling : {Pooling::kMean, Pooling::kMax,
                                Pooling::kMeanSqrtLen, Pooling::kWeightedMean})
    EXPECT_LT(PooledRow(pooling, 3), 0) << PoolingName(pooling);
}

TEST(PoolingTest, TakesTheMean) {
  EXPECT_THAT(PoolThree(Pooling::kMean), ElementsAre(2.5f, -1));
}

TEST(PoolingTest, TakesTheLargestOfEachValue) {
  EXPECT_THAT(PoolThree(Pooling::kMax), ElementsAre(4, 3));
}

TEST(PoolingTest, TheLargestKeepsANaNWhereverItStands) {
  for (int64_t row = 0; row < 3; ++row) {
    std::vector<float> states = {1, 5, 3, 4, 2, 6};
    states[2 * row] = NAN;
    std::vector<float> out(2);
    PoolStates(Pooling::kMax, states.data(), 3, 2, out.data());
    EXPECT_TRUE(std::isnan(out[0])) << row;
    EXPECT_EQ(out[1], 6);
  }
}

TEST(PoolingTest, DividesTheSumByTheRootOfTheLength) {
  const float root = std::sqrt(3.0f);
  EXPECT_THAT(PoolThree(Pooling::kMeanSqrtLen),
              ElementsAre(7.5f / root, -3 / root));
}

TEST(PoolingTest, WeighsLaterTokensMore) {
  // (1 + 2 * 4 + 3 * 2.5) / 6, (-6 + 3 * 3) / 6
  EXPECT_THAT(PoolThree(Pooling::kWeightedMean), ElementsAre(2.75f, 0.5f));
}

TEST(PoolingTest, GivesTheOnlyTokenItselfInEveryWay) {
  const std::vector<float> state = {0.25f, -3};
  for (const Pooling pooling : kAll) {
    std::vector<float> out(2);
    PoolStates(pooling, state.data(), 1, 2, out.data());
    EXPECT_EQ(out, state) << PoolingName(pooling);
  }
}

TEST(PoolingTest, KnowsItsNames) {
  for (const Pooling pooling : kAll)
    EXPECT_EQ(PoolingFromName(PoolingName(pooling)).value(), pooling);
  const auto unknown = PoolingFromName("median");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("median"));
}

TEST(NormalizeL2Test, GivesUnitLength) {
  std::vector<float> values = {3, 4};
  NormalizeL2(values.data(), 2);
  EXPECT_THAT(values, ElementsAre(0.6f, 0.8f));
}

TEST(NormalizeL2Test, LeavesZeroAsItIs) {
  std::vector<float> values = {0, 0};
  NormalizeL2(values.data(), 2);
  EXPECT_THAT(values, ElementsAre(0, 0));
}

TEST(NormalizeL2Test, DividesByNoLessThanTheSmallestNorm) {
  std::vector<float> values = {1e-13f, 0};
  NormalizeL2(values.data(), 2);
  EXPECT_THAT(values, ElementsAre(FloatEq(0.1f), 0));
  values = {1e-11f, 0};
  NormalizeL2(values.data(), 2);
  EXPECT_THAT(values, ElementsAre(1, 0));
}

TEST(NormalizeL2Test, DoesNotOverflow) {
  std::vector<float> values(4, 3e38f);
  NormalizeL2(values.data(), 4);
  EXPECT_THAT(values, ElementsAre(0.5f, 0.5f, 0.5f, 0.5f));
}

}  // namespace
}  // namespace encoderd
