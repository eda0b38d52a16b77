// What the server refuses, and how it says so. ReadError checks of every error
// that it has an ErrorInfo with a listed reason and stays below 4 KiB.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "grpc/compression.h"
#include "tests/support/field_bytes.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

using ::testing::HasSubstr;

class RefusalTest : public ::testing::Test {
 protected:
  RpcError Refused(const v1::EmbedRequest& request) {
    v1::EmbedResponse response;
    const grpc::Status status = server_.Embed(request, &response);
    EXPECT_FALSE(status.ok());
    return ReadError(status);
  }
  RpcError RefusedIds(std::vector<uint32_t> ids,
                      std::vector<uint32_t> segments = {},
                      std::vector<uint32_t> positions = {}) {
    v1::EmbedRequest request = TextRequest({"a neighbor"});
    v1::TokenIds* tokens = request.add_inputs()->mutable_tokens();
    tokens->mutable_ids()->Add(ids.begin(), ids.end());
    tokens->mutable_segment_ids()->Add(segments.begin(), segments.end());
    tokens->mutable_position_ids()->Add(positions.begin(), positions.end());
    const RpcError error = Refused(request);
    EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(error.metadata.at("input_index"), "1");
    return error;
  }

  TestServer server_;
};

TEST_F(RefusalTest, AnEmptyListHasNoInputs) {
  const RpcError error = Refused(v1::EmbedRequest());
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "NO_INPUTS");
  ASSERT_EQ(error.violations.size(), 1u);
  EXPECT_EQ(error.violations[0].first, "inputs");
}

TEST_F(RefusalTest, MoreInputsThanAllowedAreCounted) {
  const RpcError error =
      Refused(TextRequest(std::vector<std::string>(1025, "x")));
  EXPECT_EQ(error.reason, "TOO_MANY_INPUTS");
  EXPECT_EQ(error.metadata.at("count"), "1025");
  EXPECT_EQ(error.metadata.at("limit"), "1024");
}

TEST_F(RefusalTest, AMillionEmptyInputsAreRefusedUnparsed) {
  std::string bytes;
  for (int i = 0; i < 1000000; ++i) bytes += std::string("\x12\x00", 2);
  const RpcError error = ReadError(server_.CallRaw("Embed", bytes));
  EXPECT_EQ(error.reason, "TOO_MANY_INPUTS");
  EXPECT_EQ(error.metadata.at("count"), "1000000");
}

TEST_F(RefusalTest, AMillionEmptyPiecesOfAListAreRefusedUnparsed) {
  // inputs[0].tokens.ids and options.ranges.minimum; the message is no good in
  // any case, so that it is looked at as far as anything looks at one.
  std::string pieces;
  for (int i = 0; i < 1048570; ++i) pieces += std::string("\x0A\x00", 2);
  const std::string tokens = Field('\x12', Field('\x1A', pieces));
  const std::string ranges = Field('\x1A', Field('\x42', pieces));
  const std::pair<const char*, std::string> calls[] = {
      {"Embed", tokens + tokens},
      {"Embed", ranges + tokens},
      {"Encode", tokens + tokens},
      {"Tokenize", tokens + tokens}};
  for (const auto& [method, bytes] : calls) {
    const RpcError error =
        ReadError(server_.CallRaw(method, bytes + "\x0A\x01\xFF"));
    EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(error.reason, "REQUEST_TOO_LARGE") << method;
    EXPECT_EQ(error.metadata.at("limit"), "1048576");
  }
}

TEST_F(RefusalTest, MoreIdsThanTheQueueHoldsAreCountedUnparsed) {
  ServerConfig config = TestConfig();
  config.max_queue_tokens = 1000;
  TestServer server({}, config);
  v1::EmbedRequest request;
  v1::TokenIds* tokens = request.add_inputs()->mutable_tokens();
  for (int i = 0; i < 3001; ++i) tokens->add_ids(1);
  v1::EmbedResponse response;
  RpcError error = ReadError(server.Embed(request, &response));
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "REQUEST_TOO_LARGE");
  EXPECT_EQ(error.metadata.at("list_values"), "3001");
  EXPECT_EQ(error.metadata.at("limit"), "3000");
  // One less is parsed, and told what it is.
  tokens->mutable_ids()->RemoveLast();
  error = ReadError(server.Embed(request, &response));
  EXPECT_EQ(error.reason, "INPUT_TOO_LONG");
  EXPECT_EQ(error.metadata.at("token_count"), "3000");
}

TEST_F(RefusalTest, EmptyContentIsNamed) {
  v1::EmbedRequest request = TextRequest({"fine", ""});
  request.add_inputs();
  request.add_inputs()->mutable_tokens();
  const RpcError error = Refused(request);
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "EMPTY_INPUT");
  EXPECT_EQ(error.metadata.at("input_index"), "1");
  ASSERT_EQ(error.violations.size(), 3u);
  EXPECT_EQ(error.violations[0].first, "inputs[1].text");
  EXPECT_EQ(error.violations[1].first, "inputs[2]");
  EXPECT_EQ(error.violations[2].first, "inputs[3].tokens.ids");
}

TEST_F(RefusalTest, AThousandBadInputsFitIntoOneAnswer) {
  const RpcError error =
      Refused(TextRequest(std::vector<std::string>(1000, Letters(300))));
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "INPUT_TOO_LONG");
  ASSERT_GE(error.violations.size(), 2u);
  EXPECT_LE(error.violations.size(), 17u);
  const size_t listed = error.violations.size() - 1;
  EXPECT_EQ(error.violations.back().second,
            absl::StrCat("and ", 1000 - listed, " more"));
}

TEST_F(RefusalTest, IdsOutsideTheirTables) {
  RpcError error = RefusedIds({1, 259, 2});
  EXPECT_EQ(error.reason, "TOKEN_ID_OUT_OF_RANGE");
  EXPECT_EQ(error.metadata.at("index"), "1");
  EXPECT_EQ(error.metadata.at("id"), "259");
  EXPECT_EQ(error.metadata.at("limit"), "259");
  ASSERT_EQ(error.violations.size(), 1u);
  EXPECT_EQ(error.violations[0].first, "inputs[1].tokens.ids");

  // As it was sent, whatever a table could ever hold.
  error = RefusedIds({1, 4294967295u});
  EXPECT_EQ(error.reason, "TOKEN_ID_OUT_OF_RANGE");
  EXPECT_EQ(error.metadata.at("id"), "4294967295");
  EXPECT_NE(error.message.find("id 4294967295 at index 1"), std::string::npos);
  error = RefusedIds({1}, {2147483648u});
  EXPECT_EQ(error.reason, "SEGMENT_ID_OUT_OF_RANGE");
  EXPECT_EQ(error.metadata.at("id"), "2147483648");
  error = RefusedIds({1}, {}, {3000000000u});
  EXPECT_EQ(error.reason, "POSITION_ID_OUT_OF_RANGE");
  EXPECT_EQ(error.metadata.at("id"), "3000000000");

  error = RefusedIds({1, 2}, {0, 2});
  EXPECT_EQ(error.reason, "SEGMENT_ID_OUT_OF_RANGE");
  EXPECT_EQ(error.metadata.at("limit"), "2");
  EXPECT_EQ(error.violations[0].first, "inputs[1].tokens.segment_ids");

  error = RefusedIds({1, 2}, {}, {511, 512});
  EXPECT_EQ(error.reason, "POSITION_ID_OUT_OF_RANGE");
  EXPECT_EQ(error.metadata.at("limit"), "512");
  EXPECT_EQ(error.violations[0].first, "inputs[1].tokens.position_ids");
}

TEST_F(RefusalTest, IdListsOfAnotherLength) {
  EXPECT_EQ(RefusedIds({1, 2}, {0}).reason, "SEGMENT_IDS_LENGTH");
  EXPECT_EQ(RefusedIds({1, 2}, {}, {0, 1, 2}).reason, "POSITION_IDS_LENGTH");
  EXPECT_EQ(RefusedIds(std::vector<uint32_t>(257, 1)).reason, "INPUT_TOO_LONG");
}

TEST_F(RefusalTest, UnknownModelAndPrompt) {
  v1::EmbedRequest request = TextRequest({"x"});
  request.set_model("other");
  RpcError error = Refused(request);
  EXPECT_EQ(error.code, grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(error.reason, "MODEL_NOT_FOUND");
  EXPECT_EQ(error.metadata.at("model"), "other");
  EXPECT_EQ(error.metadata.at("available"), "fake");

  request.set_model(std::string(100000, 'm') + "\xC3\xA9");
  EXPECT_EQ(Refused(request).reason, "MODEL_NOT_FOUND");
  // Whatever else is wrong: the rest is checked against the model.
  request.clear_inputs();
  EXPECT_EQ(Refused(request).reason, "MODEL_NOT_FOUND");

  request = TextRequest({"x"});
  request.mutable_options()->set_prompt_name("nope");
  error = Refused(request);
  EXPECT_EQ(error.code, grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(error.reason, "PROMPT_NOT_FOUND");

  grpc::ClientContext context;
  v1::GetModelRequest get;
  get.set_model("other");
  v1::Model model;
  EXPECT_EQ(ReadError(server_.stub().GetModel(&context, get, &model)).reason,
            "MODEL_NOT_FOUND");
}

TEST_F(RefusalTest, OptionsOutOfRange) {
  v1::EmbedRequest request = TextRequest({"x"});
  request.mutable_options()->set_dimensions(9);
  RpcError error = Refused(request);
  EXPECT_EQ(error.reason, "INVALID_OPTION");
  EXPECT_EQ(error.metadata.at("value"), "9");
  EXPECT_EQ(error.metadata.at("limit"), "8");
  EXPECT_EQ(error.violations[0].first, "options.dimensions");

  request = TextRequest({"x"});
  request.mutable_options()->set_pooling(static_cast<v1::Pooling>(99));
  EXPECT_EQ(Refused(request).violations[0].first, "options.pooling");

  request = TextRequest({"x"});
  request.mutable_options()->set_truncate(static_cast<v1::Truncate>(99));
  EXPECT_EQ(Refused(request).violations[0].first, "options.truncate");

  request = TextRequest({"x"});
  request.mutable_options()->set_on_error(static_cast<v1::OnError>(3));
  error = Refused(request);
  EXPECT_EQ(error.metadata.at("value"), "3");
  EXPECT_EQ(error.metadata.at("limit"), "2");
  EXPECT_EQ(error.violations[0].first, "options.on_error");

  request = TextRequest({"x"});
  request.set_request_id(std::string(129, 'r'));
  error = Refused(request);
  EXPECT_EQ(error.metadata.at("value"), "129");
  EXPECT_EQ(error.violations[0].first, "request_id");
}

TEST_F(RefusalTest, InvalidUtf8NamesItsPlace) {
  // inputs[1].text = "ok\xC3("
  const std::string bytes("\x12\x03\x0A\x01x\x12\x06\x0A\x04ok\xC3(", 13);
  const RpcError error = ReadError(server_.CallRaw("Embed", bytes));
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "INVALID_UTF8");
  EXPECT_EQ(error.metadata.at("input_index"), "1");
  EXPECT_EQ(error.metadata.at("byte_offset"), "2");
  ASSERT_EQ(error.violations.size(), 1u);
  EXPECT_EQ(error.violations[0].first, "inputs[1].text");
}

TEST_F(RefusalTest, GarbageIsNoMessageToAnyMethod) {
  for (const char* method : {"Embed", "Encode", "Tokenize", "ListModels",
                             "GetModel", "InspectPositions"}) {
    for (const std::string& bytes :
         {std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"),
          std::string("\x12\x7F\x0A"), std::string(1000, '\x07')}) {
      const RpcError error = ReadError(server_.CallRaw(method, bytes));
      EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT) << method;
      EXPECT_EQ(error.reason, "MALFORMED_MESSAGE") << method;
    }
  }
}

TEST_F(RefusalTest, TheNextCallIsFineAfterEveryRefusal) {
  ReadError(server_.CallRaw("Embed", "\xFF\xFF"));
  Refused(v1::EmbedRequest());
  v1::EmbedResponse response;
  EXPECT_TRUE(server_.Embed(TextRequest({"x"}), &response).ok());
}

// Made by gRPC itself, so without an ErrorInfo: an unknown method, a compressed
// message, one above the limit.
TEST_F(RefusalTest, AnUnknownMethodIsUnimplemented) {
  EXPECT_EQ(server_.CallRaw("Nope", "").error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(RefusalTest, ACompressedMessageIsUnimplementedAndTheNextCallIsFine) {
  for (const auto& [algorithm, name] :
       {std::make_pair(GRPC_COMPRESS_GZIP, "gzip"),
        std::make_pair(GRPC_COMPRESS_DEFLATE, "deflate")}) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    v1::EmbedResponse response;
    const grpc::Status status = server_.stub().Embed(
        &context, TextRequest({std::string(200, 'x')}), &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << name;
    EXPECT_THAT(status.error_message(), HasSubstr(name));
    EXPECT_EQ(status.error_details(), "");
    EXPECT_TRUE(server_.Embed(TextRequest({"x"}), &response).ok());
  }
}

TEST_F(RefusalTest, AMessageAboveTheLimitIsResourceExhausted) {
  v1::EmbedResponse response;
  const grpc::Status status =
      server_.Embed(TextRequest({std::string(16 << 20, 'x')}), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("larger than max"));
  EXPECT_EQ(status.error_details(), "");
}

}  // namespace
}  // namespace encoderd
