#include "engine/checkpoint/position_inspection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "engine/checkpoint/positions.h"

namespace encoderd {
namespace {

// How many rows a named change may be off: the cosine of the pair across the
// change, and of few pairs behind it, may be above half the head's mean by
// chance.
constexpr int64_t kChangeTolerance = 3;

// N(0, 0.02), as tables are initialized.
HostMatrix RandomTable(int64_t rows, int64_t hidden, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  HostMatrix table = {rows, hidden, std::vector<float>(rows * hidden)};
  for (float& value : table.data) value = normal(random);
  return table;
}

HostMatrix Sinusoid(int64_t rows, int64_t hidden) {
  return SinusoidalPositions().Rows(rows, hidden, nullptr).value().Widened();
}

// A walk in which neighbors have the cosine `cosine`, about.
HostMatrix WalkTable(int64_t rows, int64_t hidden, double cosine,
                     uint32_t seed) {
  HostMatrix table = RandomTable(rows, hidden, seed);
  const double fresh = std::sqrt(1 - cosine * cosine);
  for (int64_t i = hidden; i < rows * hidden; ++i) {
    table.data[i] = static_cast<float>(cosine * table.data[i - hidden] +
                                       fresh * table.data[i]);
  }
  return table;
}

// The first `trained` rows of one table, the rest of another.
HostMatrix Joined(const HostMatrix& head, const HostMatrix& tail,
                  int64_t trained) {
  HostMatrix table = tail;
  std::copy(head.data.begin(), head.data.begin() + trained * head.cols,
            table.data.begin());
  return table;
}

// The rows plus one vector, of `norm` times the length of a row of N(0, 0.02).
HostMatrix Shifted(HostMatrix table, double norm, uint32_t seed) {
  const HostMatrix shared = RandomTable(1, table.cols, seed);
  for (int64_t i = 0; i < table.rows * table.cols; ++i) {
    table.data[i] += static_cast<float>(norm * shared.data[i % table.cols]);
  }
  return table;
}

PositionInspection Inspect(const HostMatrix& table) {
  return InspectPositionRows(table, 0, table.rows);
}

TEST(PositionInspectionTest, CallsARandomTableRandomWhateverTheSeed) {
  for (int64_t hidden : {64, 128, 256, 384, 512, 768, 1024}) {
    for (uint32_t seed = 1; seed <= 100; ++seed) {
      const auto result =
          Inspect(RandomTable(seed % 2 == 0 ? 128 : 512, hidden, seed));
      ASSERT_EQ(result.verdict, PositionVerdict::kLooksRandom)
          << "H " << hidden << " seed " << seed << " " << result.verdict_cosine
          << " " << result.change_row;
      ASSERT_LT(std::abs(result.verdict_cosine), result.threshold);
    }
  }
}

TEST(PositionInspectionTest, CallsFewRandomRowsRandom) {
  for (int64_t rows : {9, 10, 17, 33}) {
    for (uint32_t seed = 1; seed <= 500; ++seed) {
      ASSERT_EQ(Inspect(RandomTable(rows, 64, seed)).verdict,
                PositionVerdict::kLooksRandom)
          << rows << " rows, seed " << seed;
    }
  }
}

// A vector that all rows share makes them alike without any order.
TEST(PositionInspectionTest, CallsNoiseAroundASharedVectorRandom) {
  for (int64_t hidden : {64, 384, 768}) {
    for (double norm : {1.0, 4.5, 30.0, 1000.0}) {
      for (uint32_t seed = 1; seed <= 8; ++seed) {
        const auto result =
            Inspect(Shifted(RandomTable(512, hidden, seed), norm, seed + 1000));
        const double alike = norm * norm / (1 + norm * norm);
        ASSERT_NEAR(result.profile[0].mean, alike, 0.2);
        ASSERT_EQ(result.verdict, PositionVerdict::kLooksRandom)
            << "H " << hidden << " norm " << norm << " seed " << seed << " "
            << result.verdict_cosine << " " << result.change_row;
        ASSERT_LT(std::abs(result.verdict_cosine), result.threshold);
      }
    }
  }
}

TEST(PositionInspectionTest, ALongRowOrRowsOfZerosDoNotMakeNoiseLookTrained) {
  HostMatrix table = Shifted(RandomTable(512, 384, 1), 2, 2);
  for (int64_t h = 0; h < table.cols; ++h) table.data[h] *= 1e4f;
  EXPECT_EQ(Inspect(table).verdict, PositionVerdict::kLooksRandom);
  std::fill(table.data.begin() + 300 * table.cols, table.data.end(), 0.0f);
  EXPECT_EQ(Inspect(table).verdict, PositionVerdict::kLooksRandom);
  std::fill(table.data.begin(), table.data.end(), 0.5f);
  EXPECT_EQ(Inspect(table).verdict, PositionVerdict::kLooksRandom);
}

// The reasoning behind the threshold, measured; a shared vector changes
// nothing.
TEST(PositionInspectionTest, RandomCosinesSpreadAsTheThresholdAssumes) {
  constexpr int kTables = 400;
  constexpr int64_t kRows = 65, kHidden = 96;
  const double assumed =
      RandomCosineThreshold(kRows - 1, kHidden) / kThresholdDeviations;
  for (double norm : {0.0, 10.0}) {
    double sum = 0, squares = 0;
    for (uint32_t seed = 1; seed <= kTables; ++seed) {
      const double mean =
          Inspect(Shifted(RandomTable(kRows, kHidden, seed), norm, seed + 1000))
              .verdict_cosine;
      sum += mean;
      squares += mean * mean;
    }
    const double mean = sum / kTables;
    // Four deviations of a mean over kTables.
    EXPECT_NEAR(mean, -1.0 / (kRows - 1), 4 * assumed / std::sqrt(kTables));
    const double deviation = std::sqrt(squares / kTables - mean * mean);
    EXPECT_NEAR(deviation / assumed, 1.0, 0.15);
  }
}

TEST(PositionInspectionTest, CallsSinusoidalRowsTrained) {
  for (int64_t hidden : {64, 384, 1024}) {
    const auto result = Inspect(Sinusoid(512, hidden));
    EXPECT_EQ(result.verdict, PositionVerdict::kTrained) << hidden;
    EXPECT_GT(result.verdict_cosine, 0.9);
  }
}

TEST(PositionInspectionTest, CallsATableOfLooselyAlikeNeighboursTrained) {
  for (double cosine : {0.2, 0.5, 0.9}) {
    for (uint32_t seed = 1; seed <= 50; ++seed) {
      const auto result = Inspect(WalkTable(512, 384, cosine, seed));
      ASSERT_EQ(result.verdict, PositionVerdict::kTrained)
          << cosine << " seed " << seed;
      ASSERT_NEAR(result.verdict_cosine, cosine, 0.05);
    }
  }
}

TEST(PositionInspectionTest, CallsSmoothRowsAroundASharedVectorTrained) {
  for (double norm : {1.0, 10.0, 100.0}) {
    for (uint32_t seed = 1; seed <= 5; ++seed) {
      for (double cosine : {0.2, 0.5, 0.9}) {
        const auto result =
            Inspect(Shifted(WalkTable(512, 384, cosine, seed), norm, 1000));
        ASSERT_EQ(result.verdict, PositionVerdict::kTrained)
            << "norm " << norm << " cosine " << cosine << " seed " << seed;
        ASSERT_NEAR(result.verdict_cosine, cosine, 0.05);
      }
    }
    // A sinusoid's rows are some 35 times as long as those of N(0, 0.02).
    const auto result = Inspect(Shifted(Sinusoid(512, 384), 35 * norm, 7));
    EXPECT_EQ(result.verdict, PositionVerdict::kTrained) << norm;
    EXPECT_GT(result.verdict_cosine, 0.9);
  }
}

TEST(PositionInspectionTest, NamesTheRowWhereAHalfTrainedTableChanges) {
  for (int64_t hidden : {64, 384, 1024}) {
    for (double cosine : {0.5, 0.9}) {
      for (uint32_t seed = 1; seed <= 30; ++seed) {
        const auto result =
            Inspect(Joined(WalkTable(512, hidden, cosine, seed),
                           RandomTable(512, hidden, seed + 1000), 256));
        ASSERT_EQ(result.verdict, PositionVerdict::kPartlyTrained)
            << "H " << hidden << " cosine " << cosine << " seed " << seed;
        ASSERT_NEAR(static_cast<double>(result.change_row), 256.0,
                    kChangeTolerance)
            << "H " << hidden << " cosine " << cosine << " seed " << seed;
        ASSERT_NEAR(result.verdict_cosine, cosine, 0.1);
      }
    }
  }
}

// New rows are random about nothing, about the mean of the old ones, or about
// a vector that they share.
TEST(PositionInspectionTest, NamesTheChangeWhateverBothPartsShare) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    const HostMatrix head = Shifted(WalkTable(512, 384, 0.9, seed), 3, 1000);
    const HostMatrix random = RandomTable(512, 384, seed + 100);
    for (const HostMatrix& tail :
         {random, Shifted(random, 3, 1000), Shifted(random, 3, 2000)}) {
      for (int64_t trained : {100, 256, 370}) {
        const auto result = Inspect(Joined(head, tail, trained));
        ASSERT_EQ(result.verdict, PositionVerdict::kPartlyTrained)
            << trained << " seed " << seed;
        ASSERT_NEAR(static_cast<double>(result.change_row),
                    static_cast<double>(trained), kChangeTolerance);
        ASSERT_NEAR(result.verdict_cosine, 0.9, 0.1);
      }
    }
  }
}

TEST(PositionInspectionTest, NamesTheChangeWhereverItIs) {
  const HostMatrix random = RandomTable(512, 384, 5);
  for (int64_t trained : {10, 50, 128, 300, 500}) {
    const auto result = Inspect(Joined(Sinusoid(512, 384), random, trained));
    EXPECT_EQ(result.verdict, PositionVerdict::kPartlyTrained) << trained;
    EXPECT_NEAR(static_cast<double>(result.change_row),
                static_cast<double>(trained), kChangeTolerance);
  }
}

TEST(PositionInspectionTest, TheChangeOfARangeIsARowOfTheTable) {
  const HostMatrix table =
      Joined(Sinusoid(512, 64), RandomTable(512, 64, 6), 256);
  const auto result = InspectPositionRows(table, 200, 300);
  EXPECT_EQ(result.verdict, PositionVerdict::kPartlyTrained);
  EXPECT_NEAR(static_cast<double>(result.change_row), 256.0, kChangeTolerance);
  EXPECT_EQ(InspectPositionRows(table, 0, 250).verdict,
            PositionVerdict::kTrained);
  EXPECT_EQ(InspectPositionRows(table, 260, 200).verdict,
            PositionVerdict::kLooksRandom);
}

TEST(PositionInspectionTest, GivesNormsProfileAndCosines) {
  // Rows at 0, 90, 0 degrees and of length 5, 1, 2; then a row of zeros.
  const HostMatrix table = {4, 2, {3, 4, -0.8f, 0.6f, 1.2f, 1.6f, 0, 0}};
  const auto result = Inspect(table);
  ASSERT_EQ(result.norms.size(), 4u);
  EXPECT_NEAR(result.norms[0], 5, 1e-6);
  EXPECT_NEAR(result.norms[1], 1, 1e-6);
  EXPECT_NEAR(result.norms[2], 2, 1e-6);
  EXPECT_EQ(result.norms[3], 0);
  ASSERT_EQ(result.profile.size(), 2u);  // distances 1 and 2
  EXPECT_EQ(result.profile[1].distance, 2);
  EXPECT_NEAR(result.profile[0].mean, 0, 1e-6);
  EXPECT_NEAR(result.profile[1].mean, 0.5, 1e-6);
  // Less their mean, (2/15, 11/15), the rows are a, -2a and a; zeros stay.
  EXPECT_NEAR(result.profile[0].centered_mean, -2.0 / 3, 1e-6);
  EXPECT_NEAR(result.profile[1].centered_mean, 0.5, 1e-6);
  const std::vector<float> cosines = PositionCosines(table, 0, 4);
  const std::vector<float> want = {1, 0, 1, 0, 0, 1, 0, 0,
                                   1, 0, 1, 0, 0, 0, 0, 0};
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(cosines[i], want[i], 1e-6) << i;
  }
}

TEST(PositionInspectionTest, CosinesEqualTheirDefinitionInDouble) {
  const HostMatrix table = RandomTable(40, 75, 3);
  const std::vector<float> cosines = PositionCosines(table, 5, 30);
  for (int64_t a = 0; a < 30; ++a) {
    for (int64_t b = 0; b < 30; ++b) {
      double dot = 0, aa = 0, bb = 0;
      for (int64_t h = 0; h < 75; ++h) {
        const double x = table.Row(5 + a)[h], y = table.Row(5 + b)[h];
        dot += x * y;
        aa += x * x;
        bb += y * y;
      }
      ASSERT_NEAR(cosines[a * 30 + b], dot / std::sqrt(aa * bb), 1e-6);
    }
  }
}

TEST(PositionInspectionTest, FewRowsAreNotJudged) {
  const HostMatrix table = Sinusoid(16, 64);
  for (int64_t rows = 1; rows <= kMinPairs; ++rows) {
    const auto result = InspectPositionRows(table, 0, rows);
    EXPECT_EQ(result.verdict, PositionVerdict::kUndecided) << rows;
    EXPECT_EQ(result.verdict_cosine, 0) << rows;
    EXPECT_EQ(result.norms.size(), static_cast<size_t>(rows));
    EXPECT_EQ(result.profile.empty(), rows == 1);
  }
  EXPECT_EQ(InspectPositionRows(table, 0, kMinPairs + 1).verdict,
            PositionVerdict::kTrained);
}

}  // namespace
}  // namespace encoderd
