#include "server/rpc/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "encoderd/v1/encoder.pb.h"
#include "engine/base/error.h"
#include "server/rpc/parse_cost.h"
#include "tests/support/byte_buffers.h"

namespace encoderd {
namespace {

std::string Flat(const grpc::ByteBuffer& bytes) {
  grpc::Slice slice;
  EXPECT_TRUE(bytes.DumpToSingleSlice(&slice).ok());
  return std::string(reinterpret_cast<const char*>(slice.begin()),
                     slice.size());
}

ErrorDetail DetailOf(const std::string& bytes,
                     google::protobuf::Message* message) {
  const absl::Status status = ParseMessage(Bytes(bytes), message);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return GetErrorDetail(status).value_or(ErrorDetail());
}

int64_t Inputs(const std::string& bytes) {
  return CountParseCost(Bytes(bytes), *v1::EmbedRequest::descriptor()).entries;
}

TEST(WireTest, SerialisesWhatParses) {
  v1::EmbedRequest request;
  request.add_inputs()->set_text("text");
  request.mutable_options()->set_dimensions(7);
  const grpc::ByteBuffer bytes = SerializeMessage(request);
  EXPECT_EQ(Flat(bytes), request.SerializeAsString());
  v1::EmbedRequest parsed;
  ASSERT_TRUE(ParseMessage(bytes, &parsed).ok());
  EXPECT_EQ(parsed.SerializeAsString(), request.SerializeAsString());
  ASSERT_TRUE(ParseMessage(Crumbs(Flat(bytes)), &parsed).ok());
  EXPECT_EQ(parsed.SerializeAsString(), request.SerializeAsString());
}

TEST(WireTest, AnEmptyMessageIsAMessage) {
  v1::ListModelsRequest request;
  EXPECT_TRUE(ParseMessage(Bytes(""), &request).ok());
  EXPECT_EQ(Flat(SerializeMessage(request)), "");
}

TEST(WireTest, NamesTheTextThatIsNotUtf8) {
  const std::string bad_sequences[] = {"\x80",          // a continuation alone
                                       "\xC0\xAF",      // not the shortest form
                                       "\xE0\x80\xAF",  // nor this
                                       "\xED\xA0\x80",  // a surrogate
                                       "\xF4\x90\x80\x80",  // past U+10FFFF
                                       "\xF8\x88\x80\x80\x80",
                                       "\xC3",
                                       "\xE2\x82",
                                       "\xF0\x9F\x98"};
  for (const std::string& bad : bad_sequences) {
    v1::EmbedRequest request;
    request.add_inputs()->set_text("fine");
    request.add_inputs()->mutable_pair()->set_second("ABCDE");
    std::string bytes = request.SerializeAsString();
    // Same length, other bytes: "AB" and then the bad sequence.
    bytes.replace(bytes.find("ABCDE") + 2, 3, bad.substr(0, 3));
    if (bad.size() != 3) {
      v1::TextPair pair;
      const std::string second = "AB" + bad;
      const std::string inner =
          std::string("\x12") + static_cast<char>(second.size()) + second;
      const std::string input =
          std::string("\x12") + static_cast<char>(inner.size()) + inner;
      v1::EmbedRequest first;
      first.add_inputs()->set_text("fine");
      bytes = first.SerializeAsString() + "\x12" +
              static_cast<char>(input.size()) + input;
    }
    v1::EmbedRequest parsed;
    const ErrorDetail detail = DetailOf(bytes, &parsed);
    EXPECT_EQ(detail.reason, "INVALID_UTF8");
    EXPECT_EQ(detail.field, "inputs[1].pair.second");
    EXPECT_EQ(detail.metadata.at("input_index"), "1");
    EXPECT_EQ(detail.metadata.at("byte_offset"), "2");
  }
}

TEST(WireTest, NamesAModelThatIsNotUtf8WithoutAnIndex) {
  v1::EmbedRequest parsed;
  const ErrorDetail detail = DetailOf("\x0A\x01\xFF", &parsed);
  EXPECT_EQ(detail.reason, "INVALID_UTF8");
  EXPECT_EQ(detail.field, "model");
  EXPECT_EQ(detail.metadata.count("input_index"), 0u);
}

TEST(WireTest, NamesWhatIsNotUtf8BehindAsManyFieldsAsMayBe) {
  // Pieces of a list, one id each; the text to blame in the input behind them.
  std::string pieces;
  for (int i = 0; i < 1000000; ++i) pieces += "\x0A\x01\x07";
  v1::TokenIds tokens;
  ASSERT_TRUE(tokens.ParseFromString(pieces));
  std::string bytes = "\x12\xC5\x8D\xB7\x01\x1A\xC0\x8D\xB7\x01" + pieces;
  v1::EmbedRequest request;
  ASSERT_TRUE(request.ParseFromString(bytes));
  ASSERT_EQ(request.inputs(0).tokens().ids_size(), 1000000);
  bytes += "\x12\x04\x12\x02\x0A";
  bytes += std::string("\x00\x12\x05\x12\x03\x12\x01\xFF", 8);
  v1::EmbedRequest parsed;
  const ErrorDetail detail = DetailOf(bytes, &parsed);
  EXPECT_EQ(detail.reason, "INVALID_UTF8");
  EXPECT_EQ(detail.field, "inputs[2].pair.second");
  EXPECT_EQ(detail.metadata.at("input_index"), "2");
  EXPECT_EQ(detail.metadata.at("byte_offset"), "0");
}

TEST(WireTest, FindsBytesThatAreNotUtf8AnywhereInAText) {
  // Looked at 16 bytes at a time while they are ASCII.
  for (size_t size : {1u, 7u, 8u, 9u, 15u, 16u, 17u, 31u}) {
    for (size_t at = 0; at < size; ++at) {
      v1::EmbedRequest request;
      request.set_model(std::string(size, 'a'));
      std::string bytes = request.SerializeAsString();
      bytes[bytes.size() - size + at] = '\xFF';
      v1::EmbedRequest parsed;
      EXPECT_EQ(DetailOf(bytes, &parsed).metadata.at("byte_offset"),
                std::to_string(at));
    }
  }
}

TEST(WireTest, FindsAStringAmongAsManyFieldsAsMayBe) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += std::string("\x12\x00", 2);
  EXPECT_EQ(FindString(Bytes(bytes + "\x22\x02id"), 4, 128), "id");
  EXPECT_EQ(FindString(Bytes(bytes + "\x22\x02id\xFF"), 4, 128), "id");
  EXPECT_EQ(FindString(Bytes(bytes + "\x22\x02id"), 4, 1), "");
  EXPECT_EQ(FindString(Bytes(bytes + "\x22\x01\xFF"), 4, 128), "");
  for (int i = 1000; i < kMaxFields; ++i) bytes += std::string("\x12\x00", 2);
  EXPECT_EQ(FindString(Bytes(bytes + "\x22\x02id"), 4, 128), "");
}

TEST(WireTest, GarbageIsMalformedAndNeverMore) {
  std::mt19937 random(7);
  int malformed = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    v1::EmbedRequest parsed;
    const absl::Status status = ParseMessage(Bytes(bytes), &parsed);
    if (status.ok()) continue;
    const std::string reason = GetErrorDetail(status)->reason;
    EXPECT_TRUE(reason == "MALFORMED_MESSAGE" || reason == "INVALID_UTF8");
    malformed += reason == "MALFORMED_MESSAGE" ? 1 : 0;
  }
  EXPECT_GT(malformed, 1000);
}

TEST(WireTest, DeepNestingIsMalformedNotACrash) {
  // Groups within groups, a hundred thousand deep.
  v1::EmbedRequest parsed;
  EXPECT_EQ(DetailOf(std::string(100000, '\x0B'), &parsed).reason,
            "MALFORMED_MESSAGE");
}

TEST(WireTest, EmptiesTheEntriesThatAreNotUtf8AndLeavesTheRest) {
  v1::EmbedRequest request;
  request.add_inputs()->set_text("fine");
  request.add_inputs()->set_text("bad text");
  request.add_inputs()->mutable_pair()->set_second("bad text");
  request.add_inputs()->mutable_tokens()->add_ids(7);
  request.mutable_options()->set_dimensions(7);
  request.set_request_id("id");
  std::string bytes = request.SerializeAsString();
  for (size_t at = 0; (at = bytes.find("bad text", at)) != std::string::npos;) {
    bytes[at] = '\xFF';
  }
  std::string mended;
  std::vector<InputFault> bad;
  ASSERT_TRUE(EmptyInvalidEntries(Crumbs(bytes), *request.GetDescriptor(), 2, 2,
                                  &mended, &bad));
  ASSERT_EQ(bad.size(), 2u);
  EXPECT_EQ(bad[0].index, 1);
  EXPECT_EQ(GetErrorDetail(bad[0].status)->field, "inputs[1].text");
  EXPECT_EQ(bad[1].index, 2);
  EXPECT_EQ(GetErrorDetail(bad[1].status)->field, "inputs[2].pair.second");
  request.mutable_inputs(1)->Clear();
  request.mutable_inputs(2)->Clear();
  EXPECT_EQ(mended, request.SerializeAsString());
  bad.clear();
  EXPECT_FALSE(EmptyInvalidEntries(Crumbs(bytes), *request.GetDescriptor(), 2,
                                   1, &mended, &bad));
  EXPECT_EQ(bad.size(), 1u);
}

TEST(WireTest, MendsAnyBytesWithoutLosingAnEntry) {
  v1::EmbedRequest request;
  request.add_inputs()->set_text("one");
  request.add_inputs()->mutable_pair()->set_second("two");
  request.set_request_id("id");
  const std::string whole = request.SerializeAsString();
  std::mt19937 random(7);
  int mended_some = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = whole;
    for (int k = 0; k < 3; ++k) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    std::string mended;
    std::vector<InputFault> bad;
    if (!EmptyInvalidEntries(Bytes(bytes), *request.GetDescriptor(), 2, 2,
                             &mended, &bad)) {
      continue;
    }
    ++mended_some;
    ASSERT_FALSE(bad.empty());
    ASSERT_EQ(Inputs(mended), Inputs(bytes));
  }
  EXPECT_GT(mended_some, 100);
}

}  // namespace
}  // namespace encoderd
