// What the compiled tiles say of themselves, which needs no card.
#include <gtest/gtest.h>

#include <string>

#include "engine/device/cuda/products/cutlass_gelu.h"

namespace encoderd {
namespace cuda {
namespace {

CutlassGeluArgs ArgsOf(DType element, int32_t rows, int32_t in, int32_t out) {
  CutlassGeluArgs args = {};
  args.element = element;
  args.rows = rows;
  args.in = in;
  args.out = out;
  args.processors = 132;
  return args;
}

class CutlassTilesTest : public ::testing::TestWithParam<CutlassGeluTile> {};

TEST_P(CutlassTilesTest, ComputesEveryCountOfRowsWithoutWorkspace) {
  for (const DType element : {DType::kF16, DType::kBF16}) {
    for (const auto& [in, out] : {std::pair<int32_t, int32_t>{384, 1536},
                                  {768, 3072},
                                  {1024, 4096},
                                  {72, 136},
                                  {8, 8}}) {
      for (const int32_t rows : {1, 7, 128, 129, 1024, 8192, 1 << 20}) {
        const CutlassGeluArgs args = ArgsOf(element, rows, in, out);
        EXPECT_TRUE(GetParam().can_implement(args)) << rows << " x " << in;
        EXPECT_EQ(GetParam().workspace_bytes(args), 0) << rows << " x " << in;
      }
    }
  }
}

TEST_P(CutlassTilesTest, RefusesRowsThatAreNotWhole16Bytes) {
  for (const DType element : {DType::kF16, DType::kBF16}) {
    EXPECT_FALSE(GetParam().can_implement(ArgsOf(element, 128, 772, 3072)));
    EXPECT_FALSE(GetParam().can_implement(ArgsOf(element, 128, 768, 3076)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CutlassTilesTest,
    ::testing::Values(CutlassGelu128x192(), CutlassGelu128x128(),
                      CutlassGelu64x128()),
    [](const ::testing::TestParamInfo<CutlassGeluTile>& info) {
      std::string name = info.param.name;  // "128x128 pingpong"
      name.erase(name.find(' '));
      return "Of" + name;
    });

}  // namespace
}  // namespace cuda
}  // namespace encoderd
