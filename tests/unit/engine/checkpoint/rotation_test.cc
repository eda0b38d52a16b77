#include "engine/checkpoint/rotation.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

namespace encoderd {
namespace {

using ::testing::ElementsAreArray;

// A unit in the last place of values from 0.5 to 1: half of it is this
// rounding's, half the reference's.
constexpr double kOneUlp = 6e-8;

struct Frequency {
  double theta;
  int32_t dims;
  int32_t pair;
  float radians;
};

// Of transformers 5.23.0 with torch 2.15.0, ModernBertRotaryEmbedding.
constexpr Frequency kFrequencies[] = {
    {10000, 64, 1, 0x1.7ff222p-1f},    {10000, 64, 3, 0x1.afd136p-2f},
    {10000, 64, 5, 0x1.e5a846p-3f},    {10000, 64, 11, 0x1.59742ap-5f},
    {10000, 64, 13, 0x1.84869ep-6f},   {10000, 64, 21, 0x1.36d21ap-9f},
    {10000, 64, 28, 0x1.4b96cp-12f},   {10000, 64, 31, 0x1.17a8e4p-13f},
    {160000, 64, 1, 0x1.601474p-1f},   {160000, 64, 3, 0x1.4cfa02p-2f},
    {160000, 64, 5, 0x1.3ae8eap-3f},   {160000, 64, 11, 0x1.0a619cp-6f},
    {160000, 64, 13, 0x1.f7db1p-8f},   {160000, 64, 21, 0x1.9315a6p-12f},
    {160000, 64, 28, 0x1.d4effep-16f}, {160000, 64, 31, 0x1.30f89ap-17f},
    {10000, 80, 1, 0x1.96b23p-1f},     {10000, 80, 7, 0x1.98a136p-3f},
    {10000, 80, 39, 0x1.080408p-13f},
};

// ModernBERT's own thetas and heads of 64 columns, all pairs, as torch 2.11.0
// has them too.
constexpr float kLocalFrequencies[] = {
    0x1p0f,          0x1.7ff222p-1f,  0x1.1feb34p-1f,  0x1.afd136p-2f,
    0x1.43d136p-2f,  0x1.e5a846p-3f,  0x1.6c310ep-3f,  0x1.111aeep-3f,
    0x1.99999ap-4f,  0x1.33281ap-4f,  0x1.ccab84p-5f,  0x1.59742ap-5f,
    0x1.030dc6p-5f,  0x1.84869ep-6f,  0x1.235a72p-6f,  0x1.b4f7e4p-7f,
    0x1.47ae14p-7f,  0x1.eb736p-8f,   0x1.708938p-8f,  0x1.145ceep-8f,
    0x1.9e7c7p-9f,   0x1.36d21ap-9f,  0x1.d22a5p-10f,  0x1.5d931cp-10f,
    0x1.0624dep-10f, 0x1.892918p-11f, 0x1.26d42cp-11f, 0x1.ba2e4ap-12f,
    0x1.4b96cp-12f,  0x1.f1502ap-13f, 0x1.74eea6p-13f, 0x1.17a8e4p-13f};
constexpr float kGlobalFrequencies[] = {
    0x1p0f,          0x1.601474p-1f,  0x1.e4383ep-2f,  0x1.4cfa02p-2f,
    0x1.c9f25cp-3f,  0x1.3ae8eap-3f,  0x1.b11968p-4f,  0x1.29d2c6p-4f,
    0x1.99999ap-5f,  0x1.19a9f6p-5f,  0x1.836032p-6f,  0x1.0a619cp-6f,
    0x1.6e5b7ep-7f,  0x1.f7db1p-8f,   0x1.5a7abcp-8f,  0x1.dc846ep-9f,
    0x1.47ae14p-9f,  0x1.c2a98ap-10f, 0x1.35e68ep-10f, 0x1.aa35c6p-11f,
    0x1.2515fep-11f, 0x1.9315a6p-12f, 0x1.152efcp-12f, 0x1.7d36cp-13f,
    0x1.0624dep-13f, 0x1.6887ap-14f,  0x1.efd74cp-15f, 0x1.54f7dp-15f,
    0x1.d4effep-16f, 0x1.4277b8p-16f, 0x1.bb7e6p-17f,  0x1.30f89ap-17f};

struct Turn {
  double theta;
  int32_t dims;
  int32_t position;
  int32_t pair;
  float cos;
  float sin;
};

// Likewise.
constexpr Turn kTurns[] = {
    {10000, 64, 1, 1, 0.731760979f, 0.681561351f},
    {10000, 64, 64, 5, -0.862213969f, 0.506544292f},
    {10000, 64, 511, 13, 0.901032627f, -0.433751255f},
    {10000, 64, 511, 31, 0.997679174f, 0.0680902228f},
    {10000, 64, 4096, 1, 0.612983763f, -0.790095508f},
    {10000, 64, 4096, 31, 0.854499161f, 0.519452751f},
    {10000, 64, 8191, 1, -0.842082798f, -0.539348304f},
    {10000, 64, 8191, 5, 0.63109684f, 0.775704026f},
    {10000, 64, 8191, 13, 0.857948959f, -0.513734937f},
    {10000, 64, 8191, 31, 0.460456073f, 0.887682498f},
    {160000, 64, 1, 1, 0.772735894f, 0.634727657f},
    {160000, 64, 64, 5, -0.91465044f, -0.404245645f},
    {160000, 64, 511, 13, -0.705908179f, -0.708303332f},
    {160000, 64, 511, 31, 0.999989212f, 0.00464438414f},
    {160000, 64, 4096, 1, -0.199988529f, 0.979798257f},
    {160000, 64, 4096, 31, 0.999307096f, 0.0372193195f},
    {160000, 64, 8191, 1, -0.959715724f, 0.280972779f},
    {160000, 64, 8191, 5, -0.957329571f, 0.288998425f},
    {160000, 64, 8191, 13, 0.98987478f, 0.14194341f},
    {160000, 64, 8191, 31, 0.997230113f, 0.0743779987f},
    {10000, 80, 8191, 1, -0.99460727f, -0.103712738f},
    {10000, 80, 8191, 5, 0.0214615501f, 0.999769688f},
    {10000, 80, 8191, 13, -0.518118918f, 0.855308592f},
    {10000, 80, 8191, 39, 0.513802052f, 0.857908785f},
};

TEST(RotationTest, FrequenciesAreTheReferencesToTheBit) {
  for (const Frequency& wanted : kFrequencies) {
    const std::vector<float> found =
        RotationFrequencies(wanted.theta, wanted.dims);
    ASSERT_EQ(found.size(), static_cast<size_t>(wanted.dims / 2));
    EXPECT_EQ(found[wanted.pair], wanted.radians)
        << wanted.theta << " " << wanted.dims << " " << wanted.pair;
  }
}

TEST(RotationTest, FrequenciesOfModernBertAreTheReferencesInEveryPair) {
  EXPECT_THAT(RotationFrequencies(10000, 64),
              ElementsAreArray(kLocalFrequencies));
  EXPECT_THAT(RotationFrequencies(160000, 64),
              ElementsAreArray(kGlobalFrequencies));
}

TEST(RotationTest, AnglesAreTheReferencesUpToPosition8191) {
  for (const Turn& wanted : kTurns) {
    const RotationTables tables =
        MakeRotationTables(wanted.theta, wanted.dims, wanted.position + 1);
    const float cos = tables.cos.Row(wanted.position)[wanted.pair];
    const float sin = tables.sin.Row(wanted.position)[wanted.pair];
    EXPECT_NEAR(cos, wanted.cos, kOneUlp)
        << wanted.theta << " " << wanted.position << " " << wanted.pair;
    EXPECT_NEAR(sin, wanted.sin, kOneUlp)
        << wanted.theta << " " << wanted.position << " " << wanted.pair;
  }
}

// The first pair turns by one radian a position, which every step holds
// exactly; position 0 turns nothing.
TEST(RotationTest, WhatNeedsNoRoundingIsTheFormulasOwn) {
  const RotationTables tables = MakeRotationTables(160000, 80, 8192);
  ASSERT_EQ(tables.cos.rows, 8192);
  ASSERT_EQ(tables.cos.cols, 40);
  ASSERT_EQ(tables.sin.data.size(), tables.cos.data.size());
  for (int32_t pair = 0; pair < 40; ++pair) {
    EXPECT_EQ(tables.cos.Row(0)[pair], 1.0f);
    EXPECT_EQ(tables.sin.Row(0)[pair], 0.0f);
  }
  for (int64_t p = 0; p < 8192; ++p) {
    const auto angle = static_cast<long double>(p);
    ASSERT_NEAR(tables.cos.Row(p)[0], std::cos(angle), kOneUlp) << p;
    ASSERT_NEAR(tables.sin.Row(p)[0], std::sin(angle), kOneUlp) << p;
  }
}

// theta^(-1/2) at the middle pair: 1/100 and 1/400; and near the formula's
// everywhere, within what float leaves of an angle of some thousand radians.
TEST(RotationTest, AnglesStayWithinFloatsRoundingOfTheFormulas) {
  EXPECT_EQ(RotationFrequencies(10000, 64)[16], 1.0f / 100);
  EXPECT_EQ(RotationFrequencies(160000, 64)[16], 1.0f / 400);
  for (const double theta : {10000.0, 160000.0}) {
    for (const int32_t dims : {2, 24, 64, 80}) {
      const RotationTables tables = MakeRotationTables(theta, dims, 8192);
      double worst = 0;
      for (int64_t p = 0; p < 8192; ++p) {
        for (int32_t pair = 0; pair < dims / 2; ++pair) {
          const double angle =
              static_cast<double>(p) *
              std::pow(theta, -2.0 * pair / static_cast<double>(dims));
          worst = std::max(
              {worst, std::fabs(tables.cos.Row(p)[pair] - std::cos(angle)),
               std::fabs(tables.sin.Row(p)[pair] - std::sin(angle))});
        }
      }
      EXPECT_LT(worst, 1e-3) << theta << " " << dims;
    }
  }
}

TEST(RotationTest, TwoColumnsAreOnePairOfOneRadian) {
  const RotationTables tables = MakeRotationTables(10000, 2, 3);
  ASSERT_EQ(tables.cos.cols, 1);
  EXPECT_NEAR(tables.cos.Row(2)[0], -0.416146837, kOneUlp);
  EXPECT_NEAR(tables.sin.Row(2)[0], 0.909297427, kOneUlp);
}

TEST(RotationTest, ProductsOfItsRowsDependOnTheirDistanceOnly) {
  constexpr int32_t kDims = 24;
  const HostMatrix rows = RotationRows(10000, kDims, 300);
  ASSERT_EQ(rows.rows, 300);
  ASSERT_EQ(rows.cols, kDims);
  const auto product = [&](int64_t a, int64_t b) {
    double sum = 0;
    for (int32_t i = 0; i < kDims; ++i)
      sum += double{rows.Row(a)[i]} * rows.Row(b)[i];
    return sum;
  };
  for (const int64_t distance : {0, 1, 7, 100}) {
    double formula = 0;
    for (const float frequency : RotationFrequencies(10000, kDims))
      formula += std::cos(static_cast<double>(distance) * frequency);
    for (const int64_t first : {0, 1, 63, 199}) {
      EXPECT_NEAR(product(first, first + distance), formula, 2e-4)
          << first << " " << distance;
    }
  }
}

}  // namespace
}  // namespace encoderd
