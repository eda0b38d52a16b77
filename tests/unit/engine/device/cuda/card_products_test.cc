// The report of a layer's products, over loops on the host.
#include "tests/bench/card_products.h"

#include <gmock/gmock.h>

#include "tests/support/cuda/emulated_card.h"
#include "tests/unit/engine/device/cuda/fake_library.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> Measure(std::unique_ptr<AlgorithmLibrary> library,
                                 const std::vector<ProductArgs>& products,
                                 int64_t most_rows) {
  std::vector<std::string> lines;
  MeasureProducts(std::make_shared<EmulatedRuntime>(), 0, std::move(library),
                  products, most_rows,
                  [&](const std::string& line) { lines.push_back(line); });
  return lines;
}

TEST(CardProductsTest, TellsOfEachBucketOfEachProductThatALibraryHas) {
  const auto products = LayerProducts(DType::kBF16, 16, 32);
  ASSERT_THAT(products, SizeIs(5));
  std::vector<std::string> rows;
  for (const std::string& line :
       Measure(std::make_unique<EmulatedLibrary>(), products, 20)) {
    if (line.find("\"note\"") == line.npos) rows.push_back(line);
  }
  EXPECT_THAT(rows, SizeIs(4 * 2));  // all but GELU, up to 16 and 20 rows
  EXPECT_THAT(rows.front(),
              AllOf(HasSubstr("\"product\": \"bf16 16 48 bias\", \"rows\": 16"),
                    HasSubstr("\"algorithm\": \"loops\""),
                    HasSubstr("\"rows_keep_bits\": true")));
}

TEST(CardProductsTest, NamesAProductWhoseRowsDoNotKeepTheirBits) {
  FakeBench bench;
  bench.algorithms["only"].lies_from = 7;
  const std::vector<std::string> lines =
      Measure(std::make_unique<FakeLibrary>(&bench),
              {{DType::kBF16, 16, 8, Epilogue::kBias}}, 16);
  EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("\"error\": "),
                                       HasSubstr("depend on the other rows"))));
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
