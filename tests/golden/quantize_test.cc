// Vectors in fewer bytes, against sentence-transformers' quantize_embeddings
// and numpy's half floats (quantize.py says what is in the file).
#include "engine/base/quantize.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

std::string Bytes(const Json& hex) {
  return absl::HexStringToBytes(hex.get<std::string>());
}

std::vector<float> Floats(const Json& hex) {
  const std::string bytes = Bytes(hex);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// All vectors of a case, one after the other.
std::string Written(VectorFormat format, const ByteRanges& ranges,
                    const std::vector<float>& values, size_t columns) {
  std::string all;
  for (size_t at = 0; at < values.size(); at += columns) {
    std::vector<uint8_t> bytes(FormatBytes(format, columns));
    WriteVector(format, ranges,
                absl::MakeConstSpan(values).subspan(at, columns), bytes.data());
    all.append(bytes.begin(), bytes.end());
  }
  return all;
}

class QuantizeGoldenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto text = ReadWholeFile(ENCODERD_SOURCE_DIR "/tests/golden/data",
                                    "quantized.json", 1 << 20);
    ASSERT_THAT(text, IsOk());
    const auto json = ParseJson(*text, "quantized.json");
    ASSERT_THAT(json, IsOk());
    ASSERT_EQ(json->size(), 5u);
    cases_ = *json;
  }

  // `key` of every case, or of all but the judge's that has none.
  void Expect(VectorFormat format, const char* key, bool with_ranges) {
    for (const Json& one : cases_) {
      const size_t columns = one["columns"].get<size_t>();
      ByteRanges ranges;
      if (with_ranges) {
        ranges =
            ByteRanges::Make(Floats(one["minimum"]), Floats(one["maximum"]));
      }
      const std::vector<float> values = Floats(one["values"]);
      EXPECT_EQ(
          absl::BytesToHexString(Written(format, ranges, values, columns)),
          one[key].get<std::string>())
          << key << " of a case of " << columns << " columns";
    }
  }

  Json cases_;
};

TEST_F(QuantizeGoldenTest, BinaryIsBitEqual) {
  Expect(VectorFormat::kBinary, "binary", false);
}

TEST_F(QuantizeGoldenTest, UbinaryIsBitEqual) {
  Expect(VectorFormat::kUbinary, "ubinary", false);
}

TEST_F(QuantizeGoldenTest, Int8IsEqualWithTheSameRanges) {
  Expect(VectorFormat::kInt8, "int8", true);
}

TEST_F(QuantizeGoldenTest, Uint8IsEqualWithTheSameRanges) {
  Expect(VectorFormat::kUint8, "uint8", true);
}

TEST_F(QuantizeGoldenTest, WithoutRangesAVectorHasItsOwn) {
  Expect(VectorFormat::kInt8, "own_int8", false);
  Expect(VectorFormat::kUint8, "own_uint8", false);
}

TEST_F(QuantizeGoldenTest, HalfFloatsAreNumpys) {
  Expect(VectorFormat::kFloat16, "float16", false);
}

TEST_F(QuantizeGoldenTest, Float32IsTheValuesThemselves) {
  Expect(VectorFormat::kFloat32, "values", false);
}

}  // namespace
}  // namespace encoderd
