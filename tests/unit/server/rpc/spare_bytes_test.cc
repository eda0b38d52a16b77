// Fields that nobody will read: a few pass, many are refused unparsed.
#include "server/rpc/spare_bytes.h"

#include <gtest/gtest.h>

#include <string>

#include "encoderd/v1/encoder.pb.h"
#include "engine/error.h"
#include "server/rpc/wire.h"

namespace encoderd {
namespace {

grpc::ByteBuffer Bytes(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

int64_t Spare(const std::string& bytes) {
  return CountSpareBytes(Bytes(bytes), *v1::EmbedRequest::descriptor());
}

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// An entry of `inputs` with this content.
std::string InInput(const std::string& content) {
  EXPECT_LT(content.size(), 128u);
  return "\x12" + std::string(1, static_cast<char>(content.size())) + content;
}

// Field 15, which no message has, as a varint.
const std::string kUnknown("\x78\x00", 2);

TEST(SpareBytesTest, EveryFieldOfTheContractIsRead) {
  v1::EmbedRequest request;
  request.set_model("model");
  request.set_request_id("id");
  request.add_inputs()->set_text("text");
  request.add_inputs()->mutable_pair()->set_second("second");
  v1::TokenIds* tokens = request.add_inputs()->mutable_tokens();
  for (uint32_t i = 0; i < 300; ++i) {
    tokens->add_ids(i);
    tokens->add_segment_ids(0);
    tokens->add_position_ids(i);
  }
  v1::EmbedOptions* options = request.mutable_options();
  options->set_pooling(v1::POOLING_MEAN);
  options->set_normalize(false);
  options->set_dimensions(3);
  options->mutable_ranges()->add_minimum(1);
  options->mutable_windows()->set_overlap(1);
  EXPECT_EQ(Spare(request.SerializeAsString()), 0);
  EXPECT_EQ(Spare(""), 0);
  // Not packed, as an old encoder sends it: ids 7 and 7.
  EXPECT_EQ(Spare(InInput(std::string("\x1A\x04\x08\x07\x08\x07", 6))), 0);
}

TEST(SpareBytesTest, UnknownFieldsCountAtEveryDepth) {
  EXPECT_EQ(Spare(Repeat(kUnknown, 5)), 10);
  EXPECT_EQ(Spare(InInput(Repeat(kUnknown, 5))), 10);
  EXPECT_EQ(Spare(InInput("\x12\x04" + Repeat(kUnknown, 2))), 4);  // in a pair
  // A known number with another wire type: model = 1 as a varint.
  EXPECT_EQ(Spare(std::string("\x08\x01", 2)), 2);
}

TEST(SpareBytesTest, FurtherEntriesOfASingularFieldCount) {
  EXPECT_EQ(Spare(Repeat(std::string("\x1A\x00", 2), 4)), 6);  // options
  // pair and tokens of one input in turn: the parser keeps each.
  EXPECT_EQ(Spare(InInput(Repeat(std::string("\x12\x00\x1A\x00", 4), 9))), 32);
  EXPECT_EQ(Spare(Repeat(InInput(std::string("\x12\x00", 2)), 9)), 0);
}

TEST(SpareBytesTest, BytesThatMakeNoSenseEndTheCount) {
  EXPECT_EQ(Spare(kUnknown + "\xFF"), 2);
  EXPECT_EQ(Spare("\x12\x7F" + kUnknown), 2);  // longer than the message
  EXPECT_EQ(Spare(Repeat(kUnknown, 1000000)), kMaxSpareBytes + 2);
}

TEST(SpareBytesTest, ParsesAFewAndRefusesManyUnparsed) {
  v1::EmbedRequest request;
  const int most = kMaxSpareBytes / 2;
  EXPECT_TRUE(ParseMessage(Bytes(Repeat(kUnknown, most)), &request).ok());
  request.Clear();
  const absl::Status status =
      ParseMessage(Bytes(Repeat(kUnknown, most + 1)), &request);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const auto detail = GetErrorDetail(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, "MALFORMED_MESSAGE");
  EXPECT_EQ(detail->metadata.at("limit"), "65536");
  EXPECT_EQ(request.GetReflection()->GetUnknownFields(request).field_count(),
            0);
}

}  // namespace
}  // namespace encoderd
