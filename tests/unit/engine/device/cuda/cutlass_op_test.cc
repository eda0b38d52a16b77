// The products by CUTLASS against their formula in double, on a card of compute
// capability 9.0: each tile, both 16-bit elements.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/device/cuda/products/cutlass_products.h"
#include "engine/device/cuda/products/tuning.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

struct Shape {
  int64_t in, out;
};
// The last fills no tile, neither along K nor along the columns.
constexpr Shape kShapes[] = {{384, 1536}, {768, 3072}, {1024, 4096}, {72, 136}};
constexpr int64_t kRows[] = {1, 7, 16, 127, 128, 129, 1000};
// Rows repeat after this many: no multiple of a tile's, so that a row comes to
// lie at many places of a tile.
constexpr int64_t kDistinctRows = 129;
constexpr DType k16Bits[] = {DType::kF16, DType::kBF16};
constexpr char kUnwritten = 0x7e;  // bytes past the last row

class CutlassOpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Card card;
    ASSERT_EQ(TestRuntime()->Describe(0, &card), 0);
    auto library = NewCutlassLibrary(card);
    if (absl::IsUnimplemented(library.status()))
      GTEST_SKIP() << library.status().message();
    ASSERT_TRUE(library.ok()) << library.status();
    library_ = *std::move(library);
  }

  std::vector<Algorithm> Tiles(const ProductArgs& args) const {
    auto tiles = library_->Candidates(args, 128);
    EXPECT_TRUE(tiles.ok()) << tiles.status();
    return tiles.ok() ? *std::move(tiles) : std::vector<Algorithm>();
  }

  std::unique_ptr<AlgorithmLibrary> library_;
};

// A product's operands on host and card, and what it is by its formula.
class Case {
 public:
  Case(const Shape& shape, DType dtype, std::mt19937* random)
      : shape_(shape),
        dtype_(dtype),
        x_(RandomValues(kDistinctRows * shape.in, dtype, random)),
        weight_(RandomValues(shape.out * shape.in, dtype, random,
                             1 / std::sqrt(static_cast<float>(shape.in)))),
        bias_(RandomValues(shape.out, DType::kF32, random)),
        weight_on_card_(weight_, dtype),
        bias_on_card_(bias_, DType::kF32),
        want_(kDistinctRows * shape.out),
        bound_(kDistinctRows * shape.out) {
    for (int64_t r = 0; r < kDistinctRows; ++r)
      for (int64_t c = 0; c < shape.out; ++c) Compute(r, c);
  }

  ProductArgs args() const {
    ProductArgs args;
    args.element = dtype_;
    args.in = shape_.in;
    args.out = shape_.out;
    args.epilogue = Epilogue::kBiasGeluErf;
    args.weight = weight_on_card_.data();
    args.bias = bias_on_card_.data();
    return args;
  }
  // Rows first, first + 1, ... of the distinct ones, which repeat.
  OnCard Rows(int64_t first, int64_t count) const {
    std::vector<float> rows;
    for (int64_t r = first; r < first + count; ++r) {
      const auto from = x_.begin() + r % kDistinctRows * shape_.in;
      rows.insert(rows.end(), from, from + shape_.in);
    }
    return OnCard(rows, dtype_);
  }
  // Bytes of y, for `count` rows beginning with row `first`; nothing was
  // written past them.
  std::vector<char> Run(const Product& product, int64_t first,
                        int64_t count) const {
    const OnCard x = Rows(first, count);
    const int64_t bytes = count * RowBytes();
    const std::vector<char> before(bytes + RowBytes(), kUnwritten);
    const OnCard y(before.data(), bytes + RowBytes());
    const absl::Status ran = product.Run(x.data(), count, y.data(), nullptr);
    EXPECT_TRUE(ran.ok()) << ran;
    std::vector<char> got = y.Bytes();
    EXPECT_TRUE(std::equal(got.begin() + bytes, got.end(), before.begin()));
    got.resize(bytes);
    return got;
  }
  void ExpectFormula(const std::vector<char>& bytes, int64_t rows) const {
    const auto got =
        OnCard(bytes.data(), static_cast<int64_t>(bytes.size())).Values(dtype_);
    for (int64_t i = 0; i < rows * shape_.out; ++i) {
      const int64_t at = i % (kDistinctRows * shape_.out);
      ASSERT_TRUE(std::fabs(got[i] - want_[at]) <= bound_[at])
          << got[i] << " for " << want_[at] << ", row " << i / shape_.out
          << " of " << rows << ", column " << i % shape_.out;
    }
  }
  int64_t RowBytes() const { return shape_.out * DTypeBytes(dtype_); }

 private:
  // GELU is no steeper than 1.13. The sum is of in / 16 steps, each of 16
  // products and the sum before, that is rounded or cut to 24 bits of at most
  // the sum of absolute values. erff and its own operations: 3e-6, as in
  // row_op_test. Then one rounding to the element.
  void Compute(int64_t r, int64_t c) {
    double sum = bias_[c], absolute = std::fabs(bias_[c]);
    for (int64_t k = 0; k < shape_.in; ++k) {
      const double product =
          double{x_[r * shape_.in + k]} * weight_[c * shape_.in + k];
      sum += product;
      absolute += std::fabs(product);
    }
    const double want = 0.5 * sum * (1 + std::erf(sum / std::sqrt(2.0)));
    const double steps = std::ceil(static_cast<double>(shape_.in) / 16) + 1;
    const int64_t at = r * shape_.out + c;
    want_[at] = want;
    bound_[at] = 3e-6 + 1.13 * steps * 0x1p-23 * absolute +
                 std::fabs(want) * Epsilon(dtype_);
  }

  const Shape shape_;
  const DType dtype_;
  const std::vector<float> x_, weight_, bias_;
  const OnCard weight_on_card_, bias_on_card_;
  std::vector<double> want_, bound_;
};

TEST_F(CutlassOpTest, EqualsItsFormulaByEveryTileAtEveryCountOfRows) {
  std::mt19937 random(1);
  for (const Shape& shape : kShapes) {
    for (const DType dtype : k16Bits) {
      const Case c(shape, dtype, &random);
      ASSERT_EQ(Tiles(c.args()).size(), 3);
      for (const Algorithm& tile : Tiles(c.args())) {
        SCOPED_TRACE(tile + ", " + KeyText(KeyOf(c.args())));
        const auto product = library_->Create(c.args(), tile);
        ASSERT_TRUE(product.ok()) << product.status();
        for (const int64_t rows : kRows)
          c.ExpectFormula(c.Run(**product, 0, rows), rows);
      }
    }
  }
}

TEST_F(CutlassOpTest, GivesARowTheSameBitsAloneAndInAnyBatch) {
  std::mt19937 random(2);
  for (const Shape& shape : kShapes) {
    for (const DType dtype : k16Bits) {
      const Case c(shape, dtype, &random);
      for (const Algorithm& tile : Tiles(c.args())) {
        SCOPED_TRACE(tile + ", " + KeyText(KeyOf(c.args())));
        const auto product = library_->Create(c.args(), tile).value();
        std::vector<std::vector<char>> alone(kDistinctRows);
        for (int64_t r = 0; r < kDistinctRows; ++r)
          alone[r] = c.Run(*product, r, 1);
        for (const int64_t rows : kRows) {
          for (const int64_t first : {0, 5}) {
            const std::vector<char> all = c.Run(*product, first, rows);
            for (int64_t r = 0; r < rows; ++r) {
              const std::vector<char>& want =
                  alone[(first + r) % kDistinctRows];
              ASSERT_TRUE(std::equal(want.begin(), want.end(),
                                     all.begin() + r * c.RowBytes()))
                  << "row " << r << " of " << rows;
            }
          }
        }
      }
    }
  }
}

TEST_F(CutlassOpTest, GivesTheSameBitsFromAGraph) {
  std::mt19937 random(3);
  Runtime* const runtime = TestRuntime().get();
  OwnedStream stream;
  ASSERT_TRUE(stream.Take(runtime).ok());
  for (const DType dtype : k16Bits) {
    const Case c(kShapes[0], dtype, &random);
    for (const Algorithm& tile : Tiles(c.args())) {
      SCOPED_TRACE(tile);
      const auto product = library_->Create(c.args(), tile).value();
      const std::vector<char> plain = c.Run(*product, 0, 16);
      const OnCard x = c.Rows(0, 16);
      const OnCard y(16 * c.RowBytes());
      ASSERT_EQ(runtime->BeginCapture(stream.get()), 0);
      const absl::Status ran =
          product->Run(x.data(), 16, y.data(), stream.get());
      Graph made = nullptr;
      ASSERT_EQ(runtime->EndCapture(stream.get(), &made), 0);
      const OwnedGraph graph(runtime, made);
      ASSERT_TRUE(ran.ok()) << ran;
      ASSERT_EQ(runtime->LaunchGraph(graph.get(), stream.get()), 0);
      ASSERT_EQ(runtime->Synchronize(stream.get()), 0);
      EXPECT_EQ(y.Bytes(), plain);
    }
  }
}

TEST_F(CutlassOpTest, WaitsForThePreviousKernelWhereItOverlaps) {
  constexpr int64_t kRows = 1000;
  std::mt19937 random(5);
  Runtime* const runtime = TestRuntime().get();
  OwnedStream stream;
  ASSERT_TRUE(stream.Take(runtime).ok());
  std::vector<int32_t> list(kRows);
  std::iota(list.begin(), list.end(), 0);
  const OnCard list_card = OnCard::Of(list);
  for (const DType dtype : k16Bits) {
    const Case c(kShapes[1], dtype, &random);
    const OnCard from = c.Rows(0, kRows);
    const OnCard x(kRows * kShapes[1].in * DTypeBytes(dtype));
    const OnCard y(kRows * c.RowBytes());
    PickRowsOp copy;
    copy.x = from.View(kRows, kShapes[1].in, dtype);
    copy.rows = list_card.as<int32_t>();
    copy.row_count = kRows;
    copy.y = x.View(kRows, kShapes[1].in, dtype);
    for (const Algorithm& tile : Tiles(c.args())) {
      const auto product = library_->Create(c.args(), tile).value();
      const std::vector<char> plain = c.Run(*product, 0, kRows);
      for (int i = 0; i < 50; ++i) {
        const OpStream overlapping(stream.get(), true);
        for (const auto& [memory, bytes] :
             {std::pair(x.data(), kRows * kShapes[1].in * DTypeBytes(dtype)),
              std::pair(y.data(), kRows * c.RowBytes())})
          ASSERT_EQ(runtime->FillWithNaNs(memory, bytes, stream.get()), 0);
        ASSERT_EQ(Start(copy, overlapping), 0);
        const absl::Status ran =
            product->Run(x.data(), kRows, y.data(), overlapping);
        ASSERT_TRUE(ran.ok()) << ran;
        ASSERT_EQ(runtime->Synchronize(stream.get()), 0);
        ASSERT_EQ(y.Bytes(), plain) << tile << ", run " << i;
      }
    }
  }
}

TEST_F(CutlassOpTest, KeepsInfinitiesAndNaNsOfARowToThatRow) {
  std::mt19937 random(4);
  for (const DType dtype : k16Bits) {
    const Case c(kShapes[0], dtype, &random);
    for (const Algorithm& tile : Tiles(c.args())) {
      const auto product = library_->Create(c.args(), tile).value();
      std::vector<char> want = c.Run(*product, 0, 128);
      std::vector<float> rows = c.Rows(0, 128).Values(dtype);
      rows[3 * kShapes[0].in] = std::nanf("");
      const OnCard x(rows, dtype);
      const OnCard y(128 * c.RowBytes());
      ASSERT_TRUE(product->Run(x.data(), 128, y.data(), nullptr).ok());
      const std::vector<float> values = y.Values(dtype);
      for (int64_t i = 0; i < kShapes[0].out; ++i)
        ASSERT_TRUE(std::isnan(values[3 * kShapes[0].out + i])) << tile;
      std::vector<char> got = y.Bytes();
      for (std::vector<char>* bytes : {&want, &got}) {
        const auto row = bytes->begin() + 3 * c.RowBytes();
        std::fill(row, row + c.RowBytes(), 0);
      }
      EXPECT_EQ(got, want) << tile;
    }
  }
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
