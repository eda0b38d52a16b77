// Lists longer than one call: cutting, order, calls in flight, errors.
#include <algorithm>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "client/cpp/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_encoder_service.h"

namespace encoderd::client {
namespace {

using encoderd::testing::FakeEncoderService;
using encoderd::testing::FakeError;
using encoderd::testing::FakeVector;
using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Texts(int count) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) texts.push_back(absl::StrCat("text ", i));
  return texts;
}

class ListsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Client> Connect(const ClientOptions& options = {}) {
    auto client = Client::Connect(service_.target(), options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  FakeEncoderService service_;
};

TEST_F(ListsTest, CutsALongListIntoCallsOfSixtyFour) {
  const auto matrix = Connect()->Embed(Texts(150));
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(matrix->rows, 150);
  EXPECT_THAT(service_.call_sizes(), UnorderedElementsAre(64, 64, 22));
}

TEST_F(ListsTest, HandsAnswersOverWhileTheSourceIsSilent) {
  int given = 0, answered = 0;
  const absl::Status status = Connect()->EmbedEach(
      {[&](v1::Input* input, absl::Status*) -> absl::StatusOr<bool> {
         EXPECT_EQ(answered, given);
         input->set_text("one");
         return given++ < 3;
       },
       [&] { return answered == given; }},
      {}, [&](const EmbeddingMatrix& rows) {
        answered += static_cast<int>(rows.rows);
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(service_.call_sizes(), ElementsAreArray({1, 1, 1}));
}

TEST_F(ListsTest, KeepsABoundedNumberOfCallsInFlight) {
  service_.HoldUntilTogether(3);
  ClientOptions options;
  options.texts_per_call = 1;
  options.calls_in_flight = 3;
  ASSERT_TRUE(Connect(options)->Embed(Texts(30)).ok());
  EXPECT_EQ(service_.max_calls_together(), 3);
}

TEST_F(ListsTest, ClosesACallThatCarriesEnoughBytes) {
  ClientOptions options;
  options.bytes_per_call = 1000;
  const std::vector<std::string> texts(5, std::string(600, 'x'));
  ASSERT_TRUE(Connect(options)->Embed(texts).ok());
  EXPECT_THAT(service_.call_sizes(), UnorderedElementsAre(2, 2, 1));
}

TEST_F(ListsTest, NamesTheOffendingInputOfTheWholeList) {
  std::vector<std::string> texts = Texts(200);
  texts[131] = "a b c d e f g";
  const auto matrix = Connect()->Embed(texts);
  EXPECT_EQ(matrix.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GetInputIndex(matrix.status()), 131);
  EXPECT_EQ(matrix.status().message(),
            "inputs[131] has 9 tokens; this model takes at most 8");
}

TEST_F(ListsTest, NamesTheTextThatIsNotUtf8WithoutSendingIt) {
  std::vector<std::string> texts = Texts(3);
  texts[2] = "ab\xff";
  const auto matrix = Connect()->Embed(texts);
  EXPECT_EQ(matrix.status().code(), absl::StatusCode::kInvalidArgument);
  const auto details = GetErrorDetails(matrix.status());
  ASSERT_TRUE(details.has_value());
  EXPECT_EQ(details->reason, "INVALID_UTF8");
  EXPECT_EQ(details->metadata.at("input_index"), "2");
  EXPECT_EQ(details->metadata.at("byte_offset"), "2");
}

TEST_F(ListsTest, HandsOverWhatCameBeforeTheError) {
  std::vector<std::string> texts = Texts(10);
  texts[7] = "a b c d e f g";
  ClientOptions options;
  options.texts_per_call = 2;
  int64_t rows = 0;
  const absl::Status status = Connect(options)->EmbedEach(
      FromTexts(texts), {}, [&](const EmbeddingMatrix& matrix) {
        rows += matrix.rows;
        return absl::OkStatus();
      });
  EXPECT_EQ(GetInputIndex(status), 7);
  EXPECT_EQ(rows, 6);
}

TEST_F(ListsTest, ReadsNoFurtherAheadThanItsCallsInFlight) {
  ClientOptions options;
  options.texts_per_call = 4;
  options.calls_in_flight = 2;
  int64_t read = 0;
  int64_t written = 0;
  int64_t ahead = 0;
  const absl::Status status = Connect(options)->EmbedEach(
      {[&](v1::Input* input, absl::Status*) {
        if (read == 100) return false;
        input->set_text(absl::StrCat("text ", read++));
        ahead = std::max(ahead, read - written);
        return true;
      }},
      {}, [&](const EmbeddingMatrix& matrix) {
        written += matrix.rows;
        return absl::OkStatus();
      });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(written, 100);
  EXPECT_LE(ahead, 8);
}

TEST_F(ListsTest, StopsWithTheErrorOfTheSink) {
  ClientOptions options;
  options.texts_per_call = 1;
  const absl::Status status = Connect(options)->EmbedEach(
      FromTexts(Texts(50)), {}, [](const EmbeddingMatrix& matrix) {
        return absl::ResourceExhaustedError("the disk is full");
      });
  EXPECT_EQ(status.message(), "the disk is full");
}

TEST_F(ListsTest, ASinkThatThrowsEndsTheCallsInFlight) {
  ClientOptions options;
  options.texts_per_call = 1;
  options.calls_in_flight = 8;
  const auto client = Connect(options);
  int64_t rows = 0;
  EXPECT_THROW((void)client->EmbedEach(FromTexts(Texts(50)), {},
                                       [&](const EmbeddingMatrix& matrix) {
                                         rows += matrix.rows;
                                         if (rows == 3)
                                           throw std::runtime_error("full");
                                         return absl::OkStatus();
                                       }),
               std::runtime_error);
  EXPECT_TRUE(client->Embed(Texts(3)).ok());
}

TEST_F(ListsTest, ASourceThatThrowsEndsTheCallsInFlight) {
  ClientOptions options;
  options.texts_per_call = 1;
  options.calls_in_flight = 8;
  int texts = 0;
  const InputSource source = {[&](v1::Input* input, absl::Status*) {
    if (++texts == 5) throw std::runtime_error("gone");
    input->set_text("a");
    return true;
  }};
  EXPECT_THROW(
      (void)Connect(options)->EmbedEach(
          source, {}, [](const EmbeddingMatrix&) { return absl::OkStatus(); }),
      std::runtime_error);
}

TEST_F(ListsTest, UnderPerInputABadTextCostsItsOwnRowOnly) {
  std::vector<std::string> texts = Texts(40);
  // A whole call of bad ones first; one of them is not even sent.
  for (const int bad : {0, 1, 2, 3, 17}) texts[bad] = "a b c d e f g";
  for (const int bad : {1, 18}) texts[bad] = "ab\xff";
  ClientOptions options;
  options.texts_per_call = 4;
  EmbedOptions embed;
  embed.on_error = v1::ON_ERROR_PER_INPUT;
  const auto matrix = Connect(options)->Embed(texts, embed);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  ASSERT_EQ(matrix->rows, 40);
  for (int i = 0; i < 40; ++i) {
    if (matrix->errors[i].ok()) {
      EXPECT_THAT(matrix->row(i), ElementsAreArray(FakeVector(texts[i]))) << i;
      continue;
    }
    EXPECT_THAT(matrix->row(i), Each(0.0f));
    EXPECT_EQ(GetInputIndex(matrix->errors[i]), i);
    EXPECT_EQ(GetErrorDetails(matrix->errors[i])->reason,
              i == 1 || i == 18 ? "INVALID_UTF8" : "INPUT_TOO_LONG");
  }
  EXPECT_TRUE(matrix->errors[16].ok());
  EXPECT_FALSE(matrix->errors[17].ok());
}

TEST_F(ListsTest, UnderPerInputATextThatIsNotUtf8CostsItsOwnStatesOnly) {
  EncodeOptions options;
  options.on_error = v1::ON_ERROR_PER_INPUT;
  options.layer = 0;
  options.before_norm = true;
  options.span = v1::TOKEN_SPAN_WITHOUT_SPECIAL_TOKENS;
  const auto states = Connect()->Encode(
      std::vector<std::string>{"ab\xff", "one", "a b c d e f g"}, options);
  ASSERT_TRUE(states.ok()) << states.status();
  EXPECT_EQ(GetInputIndex((*states)[0].error), 0);
  EXPECT_TRUE((*states)[1].error.ok());
  EXPECT_EQ((*states)[1].rows, 3);
  EXPECT_EQ(GetInputIndex((*states)[2].error), 2);
  EXPECT_TRUE(service_.last_encode().before_norm());
  EXPECT_EQ(service_.last_encode().span(),
            v1::TOKEN_SPAN_WITHOUT_SPECIAL_TOKENS);
}

TEST_F(ListsTest, SaysHowManyWindowsATextTook) {
  EmbedOptions options;
  options.windows = 2;
  const auto matrix = Connect()->Embed(
      std::vector<std::string>{"one", "a b c d e f g"}, options);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_THAT(matrix->windows, ElementsAreArray({0u, 2u}));
  EXPECT_EQ(service_.last_options().windows().overlap(), 2u);
}

TEST_F(ListsTest, GivesFloatsOnly) {
  EmbedOptions options;
  options.encoding = v1::ENCODING_INT8;
  EXPECT_EQ(Connect()->Embed(Texts(1), options).status().message(),
            "encoding is ENCODING_INT8; Embed gives floats, EmbedBulk gives "
            "every encoding");
}

TEST_F(ListsTest, NamesTheTextThatNoMessageHolds) {
  std::vector<std::string> texts = Texts(10);
  texts[7].assign(5 << 20, 'x');
  const absl::Status status = Connect()->Embed(texts).status();
  EXPECT_EQ(GetInputIndex(status), 7) << status;
  EXPECT_EQ(GetErrorDetails(status)->reason, "REQUEST_TOO_LARGE");
}

TEST_F(ListsTest, ATextThatNoMessageHoldsCostsItsOwnResultIfAsked) {
  const auto client = Connect();
  std::vector<std::string> texts = Texts(10);
  texts[7].assign(5 << 20, 'x');

  EmbedOptions embed;
  embed.on_error = v1::ON_ERROR_PER_INPUT;
  const auto matrix = client->Embed(texts, embed);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EncodeOptions encode;
  encode.on_error = v1::ON_ERROR_PER_INPUT;
  const auto states = client->Encode(texts, encode);
  ASSERT_TRUE(states.ok()) << states.status();

  ASSERT_EQ(matrix->rows, 10);
  ASSERT_EQ(states->size(), 10);
  for (int i = 0; i < 10; ++i) {
    for (const absl::Status& error : {matrix->errors[i], (*states)[i].error}) {
      EXPECT_EQ(GetReason(error), i == 7 ? "REQUEST_TOO_LARGE" : "") << i;
      EXPECT_EQ(GetInputIndex(error).has_value(), i == 7) << error;
    }
  }
  EXPECT_THAT(matrix->row(7), Each(0.f));
}

TEST_F(ListsTest, TriesALongTextAsOftenAsAnyOther) {
  const std::vector<std::string> text = {std::string(3 << 20, 'x')};
  service_.FailNext(4, FakeError(grpc::StatusCode::UNAVAILABLE,
                                 "the server is draining", "DRAINING", {}));
  EXPECT_TRUE(Connect()->Embed(text).ok());
  EXPECT_EQ(service_.embed_calls(), 5);
}

TEST_F(ListsTest, WhatTheServerFindsTooLargeCostsItsOwnResultIfAsked) {
  service_.FailNext(1, FakeError(grpc::StatusCode::INVALID_ARGUMENT,
                                 "inputs[0] has more than the whole queue",
                                 "REQUEST_TOO_LARGE", {}));
  ClientOptions options;
  options.texts_per_call = 1;
  options.calls_in_flight = 1;
  EmbedOptions embed;
  embed.on_error = v1::ON_ERROR_PER_INPUT;
  const auto matrix = Connect(options)->Embed(Texts(3), embed);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(GetReason(matrix->errors[0]), "REQUEST_TOO_LARGE");
  EXPECT_EQ(GetInputIndex(matrix->errors[0]), 0);
  EXPECT_TRUE(matrix->errors[1].ok() && matrix->errors[2].ok());
}

TEST_F(ListsTest, ServesManyThreadsWithOneClient) {
  const auto client = Connect();
  std::vector<std::string> texts = Texts(100);
  std::vector<std::thread> threads;
  std::vector<bool> same(4, false);
  std::mutex mu;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto matrix = client->Embed(texts);
      const bool good =
          matrix.ok() && matrix->rows == 100 &&
          std::vector<float>(matrix->row(99).begin(), matrix->row(99).end()) ==
              FakeVector(texts[99]);
      const std::lock_guard<std::mutex> lock(mu);
      same[t] = good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(same, Each(true));
}

TEST_F(ListsTest, EndsWhenTheServersModelChanges) {
  ClientOptions options;
  options.texts_per_call = 1;
  options.calls_in_flight = 1;
  const std::vector<std::string> texts = Texts(10);
  int64_t rows = 0;
  const absl::Status status = Connect(options)->EmbedEach(
      FromTexts(texts), {}, [&](const EmbeddingMatrix& matrix) {
        rows += matrix.rows;
        service_.SetPooling(v1::POOLING_CLS);
        return absl::OkStatus();
      });
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(rows, 1);
}

TEST_F(ListsTest, EndsAListOfStatesWhenTheServersModelChanges) {
  ClientOptions options;
  options.texts_per_encode_call = 1;
  options.calls_in_flight = 1;
  const std::vector<std::string> texts = Texts(10);
  int texts_done = 0;
  const absl::Status status = Connect(options)->EncodeEach(
      FromTexts(texts), {}, [&](const TokenStates& states) {
        ++texts_done;
        service_.SetPooling(v1::POOLING_CLS);
        return absl::OkStatus();
      });
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(texts_done, 1);
}

}  // namespace
}  // namespace encoderd::client
