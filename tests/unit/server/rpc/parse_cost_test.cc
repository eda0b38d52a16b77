// What a message would cost to parse: the usual passes, what a few bytes make
// large is refused unparsed.
#include "server/rpc/parse_cost.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "encoderd/v1/encoder.pb.h"
#include "engine/base/error.h"
#include "server/rpc/wire.h"
#include "tests/support/byte_buffers.h"
#include "tests/support/field_bytes.h"

namespace encoderd {
namespace {

ParseCost Cost(const std::string& bytes) {
  return CountParseCost(Bytes(bytes), *v1::EmbedRequest::descriptor());
}

int64_t Spare(const std::string& bytes) { return Cost(bytes).spare_bytes; }

ErrorDetail Refusal(const std::string& bytes, const ParseLimits& limits) {
  const absl::Status status =
      CheckParseCost(Bytes(bytes), *v1::EmbedRequest::descriptor(), limits);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return GetErrorDetail(status).value_or(ErrorDetail());
}

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// An entry of `inputs` with this content, or with these lists of ids.
std::string InInput(const std::string& content) {
  return Field('\x12', content);
}
std::string InTokens(const std::string& lists) {
  return InInput(Field('\x1A', lists));
}

// Field 15, which no message has, as a varint.
const std::string kUnknown("\x78\x00", 2);

TEST(ParseCostTest, EveryFieldOfTheContractIsRead) {
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

TEST(ParseCostTest, CountsFieldsEntriesAndListValues) {
  v1::EmbedRequest request;
  for (int i = 0; i < 3; ++i) {
    v1::TokenIds* tokens = request.add_inputs()->mutable_tokens();
    for (uint32_t id : {7u, 300u, 4294967295u}) tokens->add_ids(id);
    tokens->add_segment_ids(0);
  }
  request.mutable_options()->mutable_ranges()->add_minimum(1);  // no varint
  const std::string bytes = request.SerializeAsString();
  for (const grpc::ByteBuffer& buffer : {Bytes(bytes), Crumbs(bytes)}) {
    const ParseCost cost =
        CountParseCost(buffer, *v1::EmbedRequest::descriptor());
    EXPECT_EQ(cost.fields, 15);
    EXPECT_EQ(cost.entries, 3);
    EXPECT_EQ(cost.list_values, 12);
    EXPECT_EQ(cost.spare_bytes, 0);
  }
  // Not packed.
  EXPECT_EQ(Cost(InTokens(std::string("\x08\x07\x08\x07", 4))).list_values, 2);
  // Cut within the list: what there is counts.
  EXPECT_EQ(Cost(bytes.substr(0, 7)).list_values, 1);
}

TEST(ParseCostTest, CountsAtLeastWhatTheParserMakesOfAnyBytes) {
  v1::EmbedRequest whole;
  v1::TokenIds* tokens = whole.add_inputs()->mutable_tokens();
  for (uint32_t id : {7u, 300u, 70000u}) tokens->add_ids(id);
  tokens->add_position_ids(1);
  whole.add_inputs()->mutable_pair()->set_second("b");
  whole.mutable_options()->mutable_ranges()->add_minimum(1);
  // Some of it twice, the first list in pieces.
  const std::string start = InTokens("\x0A\x01\x07\x0A\x02\x07\x07\x08\x07") +
                            whole.SerializeAsString();
  std::mt19937 random(7);
  int parsed = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = start;
    for (int k = 0; k < 2; ++k) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    v1::EmbedRequest request;
    const ParseCost cost = Cost(bytes);
    ASSERT_LE(cost.fields, static_cast<int64_t>(bytes.size()));
    if (!request.ParseFromString(bytes)) continue;
    ++parsed;
    int64_t values = 0;
    for (const v1::Input& input : request.inputs()) {
      values += input.tokens().ids_size() + input.tokens().segment_ids_size() +
                input.tokens().position_ids_size();
    }
    ASSERT_EQ(cost.entries, request.inputs_size());
    // A list that another content of its input put out has been made, too.
    ASSERT_GE(cost.list_values, values);
  }
  EXPECT_GT(parsed, 1000);
}

TEST(ParseCostTest, EmptyListsOfManyPiecesAreRefusedUnparsed) {
  // Millions of empty pieces of lists, in either message that has lists; a
  // request_id that is not UTF-8 behind them.
  const std::string pieces = Repeat(std::string("\x0A\x00", 2), kMaxFields);
  for (const std::string& bytes :
       {InTokens(pieces), Field('\x1A', Field('\x42', pieces))}) {
    v1::EmbedRequest request;
    const absl::Status status =
        ParseMessage(Bytes(bytes + "\x22\x01\xFF"), &request);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    const auto detail = GetErrorDetail(status);
    ASSERT_TRUE(detail.has_value());
    EXPECT_EQ(detail->reason, "REQUEST_TOO_LARGE");
    EXPECT_EQ(detail->metadata.at("limit"), "1048576");
    EXPECT_EQ(request.ByteSizeLong(), 0u);
  }
  EXPECT_EQ(Cost(InTokens(pieces)).fields, kMaxFields + 1);
  EXPECT_EQ(Cost(Repeat(InInput(""), kMaxFields)).entries, kMaxFields);
}

TEST(ParseCostTest, FieldsAndListValuesUpToTheirLimitsPass) {
  const std::string bytes = InTokens(Field('\x0A', "\x01\x02\x03"));
  const auto* type = v1::EmbedRequest::descriptor();
  EXPECT_TRUE(CheckParseCost(Bytes(bytes), *type, {3, 3}).ok());
  EXPECT_EQ(Refusal(bytes, {2, 3}).metadata.at("limit"), "2");
  const ErrorDetail detail = Refusal(bytes, {3, 2});
  EXPECT_EQ(detail.reason, "REQUEST_TOO_LARGE");
  EXPECT_EQ(detail.metadata.at("list_values"), "3");
  EXPECT_EQ(detail.metadata.at("limit"), "2");
}

// The parser would take the lower 32 bits, and so another id.
TEST(ParseCostTest, NumbersAbove32BitsAreRefused) {
  const std::string max = "\xff\xff\xff\xff\x0f";  // 2^32 - 1
  const std::string over = std::string("\xa8\xbb\x80\x80\x10");
  const std::string far = "\xa8\xbb\x80\x80\x80\x80\x80\x80\x80\x01";
  const auto* type = v1::EmbedRequest::descriptor();
  EXPECT_TRUE(CheckParseCost(Bytes(InTokens(Field('\x0A', max))), *type).ok());
  for (const std::string& ids :
       {Field('\x0A', "\x01" + over + "\x02"), "\x08" + over}) {
    const ErrorDetail detail = Refusal(InTokens(ids), {});
    EXPECT_EQ(detail.reason, "INVALID_OPTION");
    EXPECT_EQ(detail.field, "inputs[0].tokens.ids");
    EXPECT_EQ(detail.metadata.at("value"), "4294974888");
    EXPECT_EQ(detail.metadata.at("limit"), "4294967295");
  }
  EXPECT_EQ(Refusal(InTokens(Field('\x0A', far)), {}).metadata.at("value"),
            "9223372036854783400");
  // Cut into pieces, as a frame may be, after varints of every length.
  for (size_t cut = 1; cut < 9; ++cut) {
    for (const bool large : {false, true}) {
      const std::string list = "\x01\x80\x01\x80\x80\x01\x80\x80\x80\x01" +
                               max + "\x02" + (large ? over : "\x03") + "\x04";
      const std::string bytes = InTokens(Field('\x0A', list));
      std::vector<grpc::Slice> slices;
      for (size_t at = 0; at < bytes.size(); at += cut)
        slices.emplace_back(bytes.substr(at, cut));
      const grpc::ByteBuffer pieces(slices.data(), slices.size());
      const ParseCost cost = CountParseCost(pieces, *type);
      EXPECT_EQ(cost.list_values, 8) << cut;
      EXPECT_EQ(cost.too_large.has_value(), large) << cut;
    }
  }
  // An option: dimensions, and an enum, whose negative numbers take ten bytes.
  const auto number = [](int field, const std::string& value) {
    return Field('\x1A', std::string(1, static_cast<char>(field << 3)) + value);
  };
  const std::string minus = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  const int dimensions = v1::EmbedOptions::kDimensionsFieldNumber;
  const int pooling = v1::EmbedOptions::kPoolingFieldNumber;
  EXPECT_EQ(Refusal(number(dimensions, over), {}).field, "options.dimensions");
  EXPECT_EQ(Refusal(number(pooling, over), {}).field, "options.pooling");
  for (const std::string& fits : {minus, max}) {
    EXPECT_TRUE(CheckParseCost(Bytes(number(pooling, fits)), *type).ok());
  }
  EXPECT_EQ(Refusal(InInput("") + InTokens("\x08" + over), {}).field,
            "inputs[1].tokens.ids");
  // What comes again counts, too.
  EXPECT_EQ(
      Refusal(number(dimensions, "\x05" + number(dimensions, over).substr(2)),
              {})
          .field,
      "options.dimensions");
  EXPECT_EQ(
      Refusal(number(dimensions, "\x05") + number(dimensions, over), {}).field,
      "options.dimensions");
}

TEST(ParseCostTest, UnknownFieldsCountAtEveryDepth) {
  EXPECT_EQ(Spare(Repeat(kUnknown, 5)), 10);
  EXPECT_EQ(Spare(InInput(Repeat(kUnknown, 5))), 10);
  EXPECT_EQ(Spare(InInput("\x12\x04" + Repeat(kUnknown, 2))), 4);  // in a pair
  // A known number with another wire type: model = 1 as a varint.
  EXPECT_EQ(Spare(std::string("\x08\x01", 2)), 2);
}

TEST(ParseCostTest, FurtherEntriesOfASingularFieldCount) {
  EXPECT_EQ(Spare(Repeat(std::string("\x1A\x00", 2), 4)), 6);  // options
  // pair and tokens of one input in turn: the parser keeps each.
  EXPECT_EQ(Spare(InInput(Repeat(std::string("\x12\x00\x1A\x00", 4), 9))), 32);
  EXPECT_EQ(Spare(Repeat(InInput(std::string("\x12\x00", 2)), 9)), 0);
}

TEST(ParseCostTest, BytesThatMakeNoSenseEndTheCount) {
  EXPECT_EQ(Spare(kUnknown + "\xFF"), 2);
  EXPECT_EQ(Spare("\x12\x7F" + kUnknown), 2);  // longer than the message
  EXPECT_EQ(Spare(Repeat(kUnknown, 1000000)), kMaxSpareBytes + 2);
}

TEST(ParseCostTest, ParsesAFewAndRefusesManyUnparsed) {
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
