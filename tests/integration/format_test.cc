// The formats that a vector travels in, over real gRPC, against a device whose
// every bit is known. What the bytes of each format are is tested where they
// are made (tests/unit/engine, tests/golden).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/base/pooling.h"
#include "engine/base/quantize.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

using ::testing::HasSubstr;

std::string Packed(VectorFormat format, const std::vector<float>& values,
                   const ByteRanges& ranges = {}, float* scale = nullptr) {
  std::string bytes(FormatBytes(format, values.size()), '?');
  const float step = WriteVector(format, ranges, values,
                                 reinterpret_cast<uint8_t*>(bytes.data()));
  if (scale != nullptr) *scale = step;
  return bytes;
}

class FormatTest : public ::testing::Test {
 protected:
  v1::Embedding Embed(const v1::EmbedOptions& options,
                      const std::string& text = "text") {
    v1::EmbedRequest request = TextRequest({text});
    *request.mutable_options() = options;
    v1::EmbedResponse response;
    const grpc::Status status = server_.Embed(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    if (response.embeddings_size() != 1) return {};
    return response.embeddings(0);
  }
  RpcError Refused(const v1::EmbedOptions& options) {
    v1::EmbedRequest request = TextRequest({"text"});
    *request.mutable_options() = options;
    v1::EmbedResponse response;
    const RpcError error = ReadError(server_.Embed(request, &response));
    EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(error.reason, "INVALID_OPTION");
    EXPECT_EQ(error.violations.size(), 1u);
    return error;
  }

  TestServer server_;  // 8 dimensions
};

v1::EmbedOptions Encoded(v1::Encoding encoding) {
  v1::EmbedOptions options;
  options.set_encoding(encoding);
  return options;
}

v1::EmbedOptions Ranged(v1::Encoding encoding, int count, float minimum,
                        float maximum) {
  v1::EmbedOptions options = Encoded(encoding);
  for (int i = 0; i < count; ++i) {
    options.mutable_ranges()->add_minimum(minimum);
    options.mutable_ranges()->add_maximum(maximum);
  }
  return options;
}

TEST_F(FormatTest, Float32IsAListUnlessPackedIsAskedFor) {
  const v1::Embedding list = Embed(Encoded(v1::ENCODING_FLOAT32));
  EXPECT_EQ(std::vector<float>(list.floats().values().begin(),
                               list.floats().values().end()),
            server_.Expected("text"));
  v1::EmbedOptions options = Encoded(v1::ENCODING_FLOAT32);
  options.set_packed(true);
  EXPECT_EQ(Embed(options).packed(),
            Packed(VectorFormat::kFloat32, server_.Expected("text")));
}

TEST_F(FormatTest, EveryOtherEncodingIsPackedInAnyCase) {
  const std::vector<float> values = server_.Expected("text");
  const std::pair<v1::Encoding, VectorFormat> kFormats[] = {
      {v1::ENCODING_FLOAT16, VectorFormat::kFloat16},
      {v1::ENCODING_INT8, VectorFormat::kInt8},
      {v1::ENCODING_UINT8, VectorFormat::kUint8},
      {v1::ENCODING_BINARY, VectorFormat::kBinary},
      {v1::ENCODING_UBINARY, VectorFormat::kUbinary}};
  for (const auto& [encoding, format] : kFormats) {
    const v1::Embedding embedding = Embed(Encoded(encoding));
    EXPECT_FALSE(embedding.has_floats());
    EXPECT_EQ(embedding.packed(), Packed(format, values))
        << v1::Encoding_Name(encoding);
  }
}

TEST_F(FormatTest, OnlyBytesOfAVectorsOwnRangeHaveAScale) {
  float scale = 0;
  Packed(VectorFormat::kInt8, server_.Expected("text"), {}, &scale);
  EXPECT_GT(scale, 0);
  EXPECT_EQ(Embed(Encoded(v1::ENCODING_INT8)).scale(), scale);
  EXPECT_EQ(Embed(Encoded(v1::ENCODING_UINT8)).scale(), scale);
  EXPECT_EQ(Embed(Ranged(v1::ENCODING_INT8, 8, -1, 1)).scale(), 0);
  EXPECT_EQ(Embed(Encoded(v1::ENCODING_FLOAT16)).scale(), 0);
  EXPECT_EQ(Embed(Encoded(v1::ENCODING_UBINARY)).scale(), 0);
  EXPECT_EQ(Embed({}).scale(), 0);
}

TEST_F(FormatTest, RangesAreOneForEachDimension) {
  v1::EmbedOptions options = Encoded(v1::ENCODING_UINT8);
  std::vector<float> minimum, maximum;
  for (int i = 0; i < 8; ++i) {
    minimum.push_back(-0.1f * static_cast<float>(i + 1));
    maximum.push_back(0.05f * static_cast<float>(i + 1));
    options.mutable_ranges()->add_minimum(minimum.back());
    options.mutable_ranges()->add_maximum(maximum.back());
  }
  EXPECT_EQ(Embed(options).packed(),
            Packed(VectorFormat::kUint8, server_.Expected("text"),
                   ByteRanges::Make(minimum, maximum)));
}

TEST_F(FormatTest, DimensionsAreCutAndNormalisedBeforeTheyAreQuantised) {
  std::vector<float> values = server_.Expected("text");
  values.resize(3);
  NormalizeL2(values.data(), 3);
  v1::EmbedOptions options = Ranged(v1::ENCODING_INT8, 3, -1, 1);
  options.set_dimensions(3);
  const ByteRanges ranges = ByteRanges::Make({-1, -1, -1}, {1, 1, 1});
  EXPECT_EQ(Embed(options).packed(),
            Packed(VectorFormat::kInt8, values, ranges));
  options = Encoded(v1::ENCODING_UBINARY);
  options.set_dimensions(3);
  const std::string bits = Embed(options).packed();
  EXPECT_EQ(bits, Packed(VectorFormat::kUbinary, values));
  ASSERT_EQ(bits.size(), 1u);
  EXPECT_EQ(bits[0] & 0x1F, 0);  // five bits that stand for nothing
}

TEST_F(FormatTest, AnUnknownEncodingIsRefusedNotTakenForFloat32) {
  const RpcError error = Refused(Encoded(static_cast<v1::Encoding>(7)));
  EXPECT_EQ(error.violations[0].first, "options.encoding");
  EXPECT_EQ(error.metadata.at("value"), "7");
  EXPECT_EQ(error.metadata.at("limit"), "6");
}

TEST_F(FormatTest, RangesOfAnotherLengthAreRefused) {
  v1::EmbedOptions options = Ranged(v1::ENCODING_INT8, 7, -1, 1);
  RpcError error = Refused(options);
  EXPECT_EQ(error.violations[0].first, "options.ranges.minimum");
  EXPECT_EQ(error.metadata.at("value"), "7");
  EXPECT_EQ(error.metadata.at("limit"), "8");

  options.mutable_ranges()->add_minimum(-1);
  EXPECT_EQ(Refused(options).violations[0].first, "options.ranges.maximum");

  // Of the answer, not of the model.
  options = Ranged(v1::ENCODING_INT8, 8, -1, 1);
  options.set_dimensions(3);
  error = Refused(options);
  EXPECT_EQ(error.metadata.at("value"), "8");
  EXPECT_EQ(error.metadata.at("limit"), "3");

  // Present but empty is not the same as unset.
  options = Encoded(v1::ENCODING_INT8);
  options.mutable_ranges();
  EXPECT_EQ(Refused(options).metadata.at("value"), "0");
}

TEST_F(FormatTest, RangesThatAreNoNumbersAreRefused) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    v1::EmbedOptions options = Ranged(v1::ENCODING_UINT8, 8, -1, 1);
    options.mutable_ranges()->set_minimum(2, bad);
    RpcError error = Refused(options);
    EXPECT_EQ(error.violations[0].first, "options.ranges.minimum[2]");
    EXPECT_EQ(error.metadata.at("value"), absl::StrCat(bad));
    EXPECT_EQ(error.metadata.at("limit"), "finite");

    options = Ranged(v1::ENCODING_UINT8, 8, -1, 1);
    options.mutable_ranges()->set_maximum(5, bad);
    EXPECT_EQ(Refused(options).violations[0].first,
              "options.ranges.maximum[5]");
  }
}

TEST_F(FormatTest, AMaximumThatIsNotAboveItsMinimumIsRefused) {
  v1::EmbedOptions options = Ranged(v1::ENCODING_UINT8, 8, -1, 1);
  options.mutable_ranges()->set_maximum(4, -1);
  RpcError error = Refused(options);
  EXPECT_EQ(error.violations[0].first, "options.ranges.maximum[4]");
  EXPECT_EQ(error.metadata.at("value"), "-1");
  EXPECT_EQ(error.metadata.at("limit"), "-1");
  EXPECT_THAT(error.message, HasSubstr("above"));

  options = Ranged(v1::ENCODING_UINT8, 8, -3e38f, 3e38f);
  EXPECT_EQ(Refused(options).violations[0].first, "options.ranges.maximum[0]");
}

TEST_F(FormatTest, RangesWithAnEncodingThatHasNoneAreRefused) {
  for (const v1::Encoding encoding :
       {v1::ENCODING_UNSPECIFIED, v1::ENCODING_FLOAT16, v1::ENCODING_BINARY}) {
    const RpcError error = Refused(Ranged(encoding, 8, -1, 1));
    EXPECT_EQ(error.violations[0].first, "options.ranges");
    EXPECT_EQ(error.metadata.at("value"), v1::Encoding_Name(encoding));
  }
}

}  // namespace
}  // namespace encoderd
