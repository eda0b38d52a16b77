// PER_INPUT: an input at fault costs one error, in its place; the others are
// computed with the bits they would have alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/api/inputs.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

v1::EmbedRequest PerInput(v1::EmbedRequest request) {
  request.mutable_options()->set_on_error(v1::ON_ERROR_PER_INPUT);
  return request;
}

class OnErrorTest : public ::testing::Test {
 protected:
  v1::EmbedResponse Embed(const v1::EmbedRequest& request) {
    v1::EmbedResponse response;
    const grpc::Status status = server_.Embed(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.embeddings_size(), request.inputs_size());
    return response;
  }
  // What the same request is refused with as a whole.
  RpcError CallError(v1::EmbedRequest request) {
    request.mutable_options()->clear_on_error();
    v1::EmbedResponse response;
    return ReadError(server_.Embed(request, &response));
  }
  double Rejections(const std::string& reason) {
    return TestServer::Sample(
        server_.MetricsText(),
        absl::StrCat("encoderd_rejections_total{reason=\"", reason, "\"}"));
  }

  TestServer server_;
};

// All that a caller sees of an error, but for the count of its details' bytes.
void ExpectSame(const RpcError& one, const RpcError& other) {
  EXPECT_EQ(one.code, other.code);
  EXPECT_EQ(one.message, other.message);
  EXPECT_EQ(one.reason, other.reason);
  EXPECT_EQ(one.metadata, other.metadata);
  EXPECT_EQ(one.violations, other.violations);
}

TEST_F(OnErrorTest, OneBadTextOfAThousandCostsOneError) {
  std::vector<std::string> texts;
  for (int i = 0; i < 1000; ++i) texts.push_back(absl::StrCat("text ", i));
  texts[617] = Letters(257);
  const v1::EmbedRequest request = PerInput(TextRequest(texts));
  const v1::EmbedResponse response = Embed(request);
  for (int i = 0; i < 1000; ++i) {
    const v1::Embedding& embedding = response.embeddings(i);
    if (i == 617) continue;
    ASSERT_FALSE(embedding.has_error()) << i;
    ASSERT_EQ(Floats(embedding), server_.Expected(texts[i])) << i;
  }
  const v1::Embedding& bad = response.embeddings(617);
  EXPECT_EQ(bad.values_case(), v1::Embedding::VALUES_NOT_SET);
  EXPECT_EQ(bad.token_count(), 257u);
  const RpcError error = ReadError(bad.error());
  EXPECT_EQ(error.reason, "INPUT_TOO_LONG");
  EXPECT_EQ(error.metadata.at("input_index"), "617");
  EXPECT_EQ(error.metadata.at("token_count"), "257");
  EXPECT_EQ(error.metadata.at("max_tokens"), "256");
  ASSERT_EQ(error.violations.size(), 1u);
  EXPECT_EQ(error.violations[0].first, "inputs[617].text");
  ExpectSame(error, CallError(request));
}

TEST_F(OnErrorTest, EveryFaultOfAnInputIsTheOneThatTheCallWouldHave) {
  std::vector<v1::Input> bad(6);
  bad[0].set_text(Letters(300));
  bad[1].set_text("");
  bad[3].mutable_tokens()->add_ids(259);
  bad[4].mutable_tokens()->add_ids(1);
  bad[4].mutable_tokens()->add_segment_ids(2);
  bad[5].mutable_pair()->set_first(Letters(200));
  bad[5].mutable_pair()->set_second(Letters(200));
  const std::vector<std::string> reasons = {"INPUT_TOO_LONG",
                                            "EMPTY_INPUT",
                                            "EMPTY_INPUT",
                                            "TOKEN_ID_OUT_OF_RANGE",
                                            "SEGMENT_ID_OUT_OF_RANGE",
                                            "INPUT_TOO_LONG"};
  for (size_t i = 0; i < bad.size(); ++i) {
    v1::EmbedRequest request = PerInput(TextRequest({"before", "x", "after"}));
    *request.mutable_inputs(1) = bad[i];
    const v1::EmbedResponse response = Embed(request);
    const RpcError error = ReadError(response.embeddings(1).error());
    EXPECT_EQ(error.reason, reasons[i]) << i;
    ExpectSame(error, CallError(request));
    if (bad[i].has_tokens()) {
      EXPECT_EQ(response.embeddings(1).token_count(),
                bad[i].tokens().ids_size());
    }
    EXPECT_EQ(Floats(response.embeddings(0)), server_.Expected("before"));
    EXPECT_EQ(Floats(response.embeddings(2)), server_.Expected("after"));
    EXPECT_EQ(response.usage().tokens(), 8u + 7u);
  }
}

// One that names a prompt has whatever length the model's author chose.
TEST(OnErrorSizeTest, TheErrorOfAnInputHasAtMostOneKibibyte) {
  constexpr size_t kMaxBytes = 1024;  // of the contract
  FakeModelOptions fake;
  fake.prompt_name = std::string(3000, 'n');
  TestServer server(fake);
  v1::EmbedRequest request = TextRequest({"x", Letters(300)});
  request.mutable_options()->set_prompt_name(fake.prompt_name);
  v1::EmbedResponse response;
  const RpcError whole = ReadError(server.Embed(request, &response));
  EXPECT_EQ(whole.reason, "INPUT_TOO_LONG");
  EXPECT_GT(whole.details_bytes, kMaxBytes);
  ASSERT_TRUE(server.Embed(PerInput(request), &response).ok());
  EXPECT_FALSE(response.embeddings(0).has_error());
  EXPECT_LE(response.embeddings(1).error().ByteSizeLong(), kMaxBytes);
  const RpcError error = ReadError(response.embeddings(1).error());
  EXPECT_EQ(error.reason, "INPUT_TOO_LONG");
  EXPECT_EQ(error.message, whole.message);
  EXPECT_EQ(error.metadata.at("input_index"), "1");
}

TEST_F(OnErrorTest, ATextThatIsNotUtf8IsOneErrorToo) {
  // inputs: "x", "ok\xC3(", a pair with a bad second text, "y"; options with
  // on_error PER_INPUT.
  const std::string inputs(
      "\x12\x03\x0A\x01x"
      "\x12\x06\x0A\x04ok\xC3("
      "\x12\x08\x12\x06\x0A\x01"
      "a\x12\x01\xFF"
      "\x12\x03\x0A\x01y",
      28);
  const std::string per_input("\x1A\x02\x50\x02", 4);
  v1::EmbedResponse response;
  for (const std::string& bytes : {inputs + per_input, per_input + inputs}) {
    const grpc::Status status = server_.CallRaw("Embed", bytes, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(response.embeddings_size(), 4);
    EXPECT_EQ(Floats(response.embeddings(0)), server_.Expected("x"));
    EXPECT_EQ(Floats(response.embeddings(3)), server_.Expected("y"));
    const RpcError text = ReadError(response.embeddings(1).error());
    EXPECT_EQ(text.reason, "INVALID_UTF8");
    EXPECT_EQ(text.metadata.at("input_index"), "1");
    EXPECT_EQ(text.metadata.at("byte_offset"), "2");
    EXPECT_EQ(text.violations.at(0).first, "inputs[1].text");
    // The call with that fault alone: its first two inputs.
    ExpectSame(text, ReadError(server_.CallRaw("Embed", inputs.substr(0, 13))));
    const RpcError pair = ReadError(response.embeddings(2).error());
    EXPECT_EQ(pair.reason, "INVALID_UTF8");
    EXPECT_EQ(pair.violations.at(0).first, "inputs[2].pair.second");
  }
}

TEST_F(OnErrorTest, ATextOfTheRequestItselfThatIsNotUtf8StillFailsTheCall) {
  // A bad request_id with a bad input.
  const std::string bytes("\x12\x03\x0A\x01\xFF\x1A\x02\x50\x02\x22\x01\xFF",
                          12);
  EXPECT_EQ(ReadError(server_.CallRaw("Embed", bytes)).reason, "INVALID_UTF8");
}

TEST_F(OnErrorTest, AllInputsBadIsAnAnswerOfErrors) {
  const v1::EmbedResponse response =
      Embed(PerInput(TextRequest(std::vector<std::string>(1000, ""))));
  for (int i = 0; i < 1000; ++i) {
    const RpcError error = ReadError(response.embeddings(i).error());
    ASSERT_EQ(error.reason, "EMPTY_INPUT");
    ASSERT_EQ(error.metadata.at("input_index"), absl::StrCat(i));
  }
  EXPECT_EQ(response.usage().tokens(), 0u);
  EXPECT_EQ(response.usage().queue_ms(), 0);
  EXPECT_EQ(response.usage().compute_ms(), 0);
}

TEST_F(OnErrorTest, ErrorsAreCountedByReasonAndTheCallAsOk) {
  const double long_before = Rejections("INPUT_TOO_LONG");
  const double empty_before = Rejections("EMPTY_INPUT");
  Embed(PerInput(TextRequest({Letters(300), "", "fine", Letters(301)})));
  EXPECT_EQ(Rejections("INPUT_TOO_LONG"), long_before + 2);
  EXPECT_EQ(Rejections("EMPTY_INPUT"), empty_before + 1);
  EXPECT_EQ(TestServer::Sample(
                server_.MetricsText(),
                "encoderd_requests_total{code=\"OK\",method=\"Embed\"}"),
            1);
}

TEST(OnErrorCountTest, ErrorsOfAnAnswerThatIsNotSentAreNotCounted) {
  ServerConfig config = TestConfig();
  config.max_message_bytes = 1 << 16;
  TestServer server({}, config);
  const v1::EmbedRequest large =
      PerInput(TextRequest(std::vector<std::string>(1000, "")));
  v1::EmbedResponse response;
  EXPECT_EQ(ReadError(server.Embed(large, &response)).reason,
            "REQUEST_TOO_LARGE");
  const auto empty = [&server] {
    return TestServer::Sample(
        server.MetricsText(),
        "encoderd_rejections_total{reason=\"EMPTY_INPUT\"}");
  };
  EXPECT_EQ(empty(), 0);
  EXPECT_TRUE(server.Embed(PerInput(TextRequest({"a", ""})), &response).ok());
  EXPECT_EQ(empty(), 1);
}

// An input of a few bytes costs an error of hundreds.
TEST_F(OnErrorTest, ErrorsThatDoNotFitIntoAnAnswerAreNotBuilt) {
  ServerConfig config = TestConfig();
  config.max_message_bytes = 64 << 10;
  config.max_inputs_per_request = 1 << 14;
  TestServer server(FakeModelOptions(), config);
  const std::string not_utf8 = "\x12\x03\x0a\x01\xff";  // one of `inputs`
  std::string texts;
  for (int i = 0; i < 10000; ++i) texts += not_utf8;
  v1::EmbedRequest no_content;
  for (int i = 0; i < 10000; ++i) no_content.add_inputs();
  const std::vector<std::string> empty(10000, "");
  const auto error = [&server](const std::string& inputs) {
    return ReadError(server.CallRaw(
        "Embed", PerInput(v1::EmbedRequest()).SerializeAsString() + inputs));
  };
  for (const v1::EmbedRequest& request : {no_content, TextRequest(empty)}) {
    const RpcError refused = error(request.SerializeAsString());
    EXPECT_EQ(refused.code, grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(refused.reason, "REQUEST_TOO_LARGE");
    EXPECT_EQ(refused.metadata.at("limit"), "65536");
    // Not of all of them: it stopped where the answer was full.
    EXPECT_LT(std::stol(refused.metadata.at("reply_bytes")), 2 * 65536);
  }
  EXPECT_EQ(error(texts).reason, "INVALID_UTF8");

  // Found by the tokenizer: written until the answer is full.
  std::vector<std::string> long_texts(200, Letters(257));
  const RpcError built = error(TextRequest(long_texts).SerializeAsString());
  EXPECT_EQ(built.reason, "REQUEST_TOO_LARGE");
  EXPECT_LT(std::stol(built.metadata.at("reply_bytes")), 65536 + 2048);

  v1::EmbedResponse least;
  ASSERT_TRUE(server.Embed(PerInput(TextRequest({"", "x"})), &least).ok());
  EXPECT_GE(static_cast<int64_t>(least.embeddings(0).error().ByteSizeLong()),
            kLeastErrorBytes);
}

TEST_F(OnErrorTest, WhatIsWrongWithTheRequestItselfStillFailsTheCall) {
  v1::EmbedRequest request = PerInput(TextRequest({"x"}));
  request.mutable_options()->set_prompt_name("nope");
  v1::EmbedResponse response;
  EXPECT_EQ(ReadError(server_.Embed(request, &response)).reason,
            "PROMPT_NOT_FOUND");
  EXPECT_EQ(
      ReadError(server_.Embed(PerInput(v1::EmbedRequest()), &response)).reason,
      "NO_INPUTS");
}

TEST_F(OnErrorTest, AnInputThatFailsOnTheDeviceFailsAlone) {
  server_.model().device().PoisonToken(FakeTokenizer::Id('#'));
  server_.model().device().NanToken(FakeTokenizer::Id('%'));
  const v1::EmbedResponse response =
      Embed(PerInput(TextRequest({"one", "#", "two", "%", "three"})));
  EXPECT_EQ(Floats(response.embeddings(0)), server_.Expected("one"));
  EXPECT_EQ(Floats(response.embeddings(2)), server_.Expected("two"));
  EXPECT_EQ(Floats(response.embeddings(4)), server_.Expected("three"));
  for (const int at : {1, 3}) {
    const RpcError error = ReadError(response.embeddings(at).error());
    EXPECT_EQ(error.code, grpc::StatusCode::INTERNAL);
    EXPECT_EQ(error.reason, "DEVICE_FAULT");
    EXPECT_FALSE(error.metadata.at("error_id").empty());
  }
  EXPECT_EQ(Rejections("DEVICE_FAULT"), 2);
}

TEST_F(OnErrorTest, EncodeHasItToo) {
  v1::EncodeRequest request;
  request.add_inputs()->set_text("abc");
  request.add_inputs()->set_text(Letters(257));
  request.add_inputs()->set_text("de");
  v1::EncodeResponse response;
  EXPECT_EQ(ReadError(server_.Encode(request, &response)).reason,
            "INPUT_TOO_LONG");
  request.set_on_error(v1::ON_ERROR_PER_INPUT);
  ASSERT_TRUE(server_.Encode(request, &response).ok());
  ASSERT_EQ(response.states_size(), 3);
  EXPECT_EQ(response.states(0).rows(), 5u);
  EXPECT_EQ(response.states(2).rows(), 4u);
  EXPECT_EQ(response.states(1).rows(), 0u);
  EXPECT_EQ(response.states(1).token_count(), 257u);
  EXPECT_TRUE(response.states(1).packed().empty());
  const RpcError error = ReadError(response.states(1).error());
  EXPECT_EQ(error.reason, "INPUT_TOO_LONG");
  EXPECT_EQ(error.violations.at(0).first, "inputs[1].text");

  request.set_on_error(static_cast<v1::OnError>(3));
  EXPECT_EQ(ReadError(server_.Encode(request, &response)).violations[0].first,
            "on_error");
}

}  // namespace
}  // namespace encoderd
