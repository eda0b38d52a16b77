// A server that takes fewer inputs in a call than the client sends.
#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/calls.h"
#include "client/cpp/client.h"
#include "client/cpp/error.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/inputs.h"
#include "client/cpp/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_encoder_service.h"

namespace encoderd::client {
namespace {

using encoderd::testing::FakeEncoderService;
using encoderd::testing::FakeError;
using encoderd::testing::FakeVector;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<std::string> Texts(int count) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) texts.push_back(absl::StrCat("text ", i));
  return texts;
}

absl::Status Refusal(const std::string& reason,
                     const std::map<std::string, std::string>& told) {
  return FromGrpc(FakeError(grpc::StatusCode::INVALID_ARGUMENT, "less, please",
                            reason, told),
                  0);
}

TEST(SplitTest, KeepsInputsErrorsAndOtherFields) {
  const absl::Status bad = absl::InvalidArgumentError("bad");
  const Cut cut = {10, {0, -1, 1, -1, 2}, {{}, bad, {}, bad, {}}};
  v1::EmbedRequest request;
  request.set_model("a");
  for (const char* text : {"zero", "two", "four"}) {
    request.add_inputs()->set_text(text);
  }
  const auto calls = Split(cut, request, 2);
  ASSERT_EQ(calls.size(), 3u);
  const auto& [first, zero] = calls[0];
  EXPECT_EQ(first.first_input, 10);
  EXPECT_THAT(first.sent_as, ElementsAre(0, -1));
  EXPECT_THAT(first.errors, ElementsAre(absl::OkStatus(), bad));
  ASSERT_EQ(zero.inputs_size(), 1);
  EXPECT_EQ(zero.inputs(0).text(), "zero");
  const auto& [second, two] = calls[1];
  EXPECT_EQ(second.first_input, 12);
  EXPECT_THAT(second.sent_as, ElementsAre(0, -1));
  EXPECT_THAT(second.errors, ElementsAre(absl::OkStatus(), bad));
  ASSERT_EQ(two.inputs_size(), 1);
  EXPECT_EQ(two.inputs(0).text(), "two");
  const auto& [third, four] = calls[2];
  EXPECT_EQ(third.first_input, 14);
  EXPECT_THAT(third.sent_as, ElementsAre(0));
  ASSERT_EQ(four.inputs_size(), 1);
  EXPECT_EQ(four.inputs(0).text(), "four");
  for (const auto& [part, its] : calls) EXPECT_EQ(its.model(), "a");
}

TEST(RefusalTest, HalvesACallWhereItNamesNoNumberOfInputs) {
  for (const int inputs : {2, 3, 8, 9}) {
    EXPECT_EQ(FewerInputs(Refusal(kTooManyInputs, {}), inputs),
              (inputs + 1) / 2);
    // Of tokens or bytes.
    EXPECT_EQ(FewerInputs(Refusal(kRequestTooLarge, {{"limit", "1"}}), inputs),
              (inputs + 1) / 2);
  }
}

// The sizes of the calls that a cutter of calls of eight makes of nine inputs
// after a refusal of eight.
std::vector<int> SizesAfter(const std::map<std::string, std::string>& told) {
  int left = 9;
  InputCutter cutter({[&left](v1::Input* input, absl::Status*) {
                       input->set_text("one");
                       return left-- > 0;
                     }},
                     /*max_inputs=*/8, /*max_bytes=*/1 << 20,
                     /*per_input=*/false);
  cutter.TakeFewer(FewerInputs(Refusal(kTooManyInputs, told), 8));
  std::vector<int> sizes;
  while (true) {
    v1::EmbedRequest request;
    if (cutter.Next(request.mutable_inputs()).sent_as.empty()) return sizes;
    sizes.push_back(request.inputs_size());
  }
}

TEST(InputCutterTest, CutsAsManyInputsAsTheServerSaysThatItTakes) {
  EXPECT_THAT(SizesAfter({{"limit", "5"}}), ElementsAre(5, 4));
  EXPECT_THAT(SizesAfter({}), ElementsAre(4, 4, 1));
  for (const char* nonsense : {"8", "100", "many", ""}) {
    EXPECT_THAT(SizesAfter({{"limit", nonsense}}), ElementsAre(4, 4, 1));
  }
  for (const char* nonsense : {"0", "-1"}) {
    EXPECT_EQ(SizesAfter({{"limit", nonsense}}).size(), 9u);
  }
}

using OneCall = Call<v1::EmbedRequest, v1::EmbedResponse>;

// The refusal of a server that takes one input in a call.
const grpc::Status kOne = FakeError(grpc::StatusCode::INVALID_ARGUMENT, "one",
                                    kTooManyInputs, {{"limit", "1"}});

// A list of one call of `inputs`; `made` counts them.
Cut OneOf(int inputs, int* made, v1::EmbedRequest* request) {
  Cut cut;
  for (; *made < inputs; ++*made) {
    request->add_inputs()->set_text("one");
    cut.sent_as.push_back(*made);
    cut.errors.emplace_back();
  }
  return cut;
}

void End(OneCall* call, const grpc::Status& status) {
  call->status = status;
  call->done->Notify();
}

TEST(SmallerCallsTest, NoMoreOfThemAreInFlightThanOfOthers) {
  std::deque<OneCall*> in_flight;
  size_t most = 0;
  // Ends a call each time it is asked.
  const absl::Time end = SteadyNow() + absl::Seconds(60);
  const std::function<bool()> stop = [&] {
    most = std::max(most, in_flight.size());
    if (in_flight.empty()) return SteadyNow() > end;
    in_flight.front()->done->Notify();
    in_flight.pop_front();
    return false;
  };
  int made = 0;
  std::vector<int64_t> finished;
  const absl::Status status = RunCalls<v1::EmbedRequest, v1::EmbedResponse>(
      {/*max_in_flight=*/2, /*timeout=*/absl::Hours(2), stop},
      [&](v1::EmbedRequest* request) { return OneOf(8, &made, request); },
      [&](OneCall* call) {
        if (call->request.inputs_size() == 1) {
          in_flight.push_back(call);
        } else {
          End(call, kOne);
        }
      },
      [&](const OneCall& call) {
        finished.push_back(call.cut.first_input);
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(finished, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(most, 2u);
}

// The others do not wait until one that was sent again is answered.
TEST(SmallerCallsTest, BeginOnceTheFrontWasSentAgain) {
  OneCall* second = nullptr;  // its second attempt, unanswered
  // A test that would wait without end fails instead.
  const absl::Time end = SteadyNow() + absl::Seconds(60);
  const std::function<bool()> stop = [&] {
    if (SteadyNow() <= end) return false;
    if (second != nullptr && !second->Ended()) End(second, {});
    return true;
  };
  CallOptions options{/*max_in_flight=*/2, /*timeout=*/absl::Hours(2), stop};
  options.retry_buffer_bytes = 0;  // this client sends all of them again
  int made = 0;
  std::vector<int64_t> finished;
  const absl::Status status = RunCalls<v1::EmbedRequest, v1::EmbedResponse>(
      options,
      [&](v1::EmbedRequest* request) { return OneOf(4, &made, request); },
      [&](OneCall* call) {
        if (call->request.inputs_size() > 1) return End(call, kOne);
        if (call->cut.first_input == 1 && call->attempts == 1) {
          return End(call, {grpc::StatusCode::UNAVAILABLE, "gone"});
        }
        if (call->cut.first_input == 1) {
          second = call;
          return;
        }
        End(call, {});
        if (call->cut.first_input == 2 && second != nullptr) End(second, {});
      },
      [&](const OneCall& call) {
        finished.push_back(call.cut.first_input);
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(finished, ElementsAre(0, 1, 2, 3));
}

// A list of five inputs in one call, by a server whose messages hold two of
// them; the sizes of the calls that it took.
absl::Status RunTooLarge(bool per_input, std::vector<int>* taken,
                         std::vector<int64_t>* later_bytes) {
  const std::function<bool()> stop;
  CallOptions options{/*max_in_flight=*/1, /*timeout=*/absl::Hours(2), stop};
  options.per_input = per_input;
  options.take_smaller = [&](int64_t bytes) { later_bytes->push_back(bytes); };
  int made = 0;
  return RunCalls<v1::EmbedRequest, v1::EmbedResponse>(
      options,
      [&](v1::EmbedRequest* request) { return OneOf(5, &made, request); },
      [&](OneCall* call) {
        if (call->request.inputs_size() <= 2) return End(call, {});
        End(call, grpc::Status(
                      grpc::StatusCode::RESOURCE_EXHAUSTED,
                      absl::StrCat("Received message larger than max (",
                                   call->request.ByteSizeLong(), " vs. 9)")));
      },
      [&](const OneCall& call) {
        taken->push_back(call.request.inputs_size());
        return absl::OkStatus();
      });
}

TEST(SmallerCallsTest, WhatIsTooLargeTogetherTravelsApartIfAsked) {
  std::vector<int> taken;
  std::vector<int64_t> later_bytes;
  EXPECT_EQ(RunTooLarge(/*per_input=*/true, &taken, &later_bytes),
            absl::OkStatus());
  EXPECT_THAT(taken, ElementsAre(2, 1, 2));
  // "one" takes 7 bytes of a request.
  EXPECT_THAT(later_bytes, ElementsAre(5 * 7 / 2, 3 * 7 / 2));
  taken.clear();
  EXPECT_EQ(GetReason(RunTooLarge(/*per_input=*/false, &taken, &later_bytes)),
            kRequestTooLarge);
  EXPECT_THAT(taken, ElementsAre());
}

TEST(InputCutterTest, CutsSmallerCallsAfterOneThatWasTooLarge) {
  InputCutter cutter({[](v1::Input* input, absl::Status*) {
                       input->set_text("one");
                       return true;
                     }},
                     /*max_inputs=*/8, /*max_bytes=*/1 << 20,
                     /*per_input=*/true);
  const auto next = [&cutter] {
    v1::EmbedRequest request;
    return cutter.Next(request.mutable_inputs()).sent_as.size();
  };
  EXPECT_EQ(next(), 8u);
  cutter.TakeSmaller(1);
  EXPECT_EQ(next(), 1u);
  cutter.TakeSmaller(1 << 20);  // never more again
  EXPECT_EQ(next(), 1u);
}

class FewerInputsTest : public ::testing::Test {
 protected:
  FewerInputsTest() { service_.SetMaxInputs(3); }

  std::unique_ptr<Client> Connect() {
    ClientOptions options;
    options.texts_per_call = options.texts_per_encode_call = 8;
    options.calls_in_flight = 2;
    auto client = Client::Connect(service_.target(), options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  // Of the calls, or requests of a stream, only the two that were in flight
  // before the first answer were refused, each once.
  static void ExpectTwoRefused(const std::vector<int>& sizes) {
    std::vector<int> refused;
    for (const int size : sizes) {
      if (size > 3) refused.push_back(size);
    }
    EXPECT_THAT(refused, ElementsAre(8, 8));
  }

  FakeEncoderService service_;
};

TEST_F(FewerInputsTest, AListIsSentInCallsThatTheServerTakes) {
  const std::vector<std::string> texts = Texts(100);
  const auto matrix = Connect()->Embed(texts);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  ASSERT_EQ(matrix->rows, 100);
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(matrix->row(i), ElementsAreArray(FakeVector(texts[i]))) << i;
  }
  ExpectTwoRefused(service_.call_sizes());
}

TEST_F(FewerInputsTest, StatesAreAskedForInCallsThatTheServerTakes) {
  const std::vector<std::string> texts = Texts(100);
  const auto states = Connect()->Encode(texts);
  ASSERT_TRUE(states.ok()) << states.status();
  ASSERT_EQ(states->size(), 100u);
  for (int i = 0; i < 100; ++i) {
    std::vector<float> first = (*states)[i].values;
    first.resize(FakeEncoderService::kHiddenSize);
    EXPECT_THAT(first,
                ElementsAreArray(FakeVector(absl::StrCat(texts[i], "#0"))))
        << i;
  }
  ExpectTwoRefused(service_.token_call_sizes());
}

TEST_F(FewerInputsTest, TokensAreAskedForInCallsThatTheServerTakes) {
  const auto inputs = Connect()->Tokenize(Texts(100));
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_EQ(inputs->size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT((*inputs)[i].tokens(),
                ElementsAre("[CLS]", "text", absl::StrCat(i), "[SEP]"));
  }
  ExpectTwoRefused(service_.token_call_sizes());
}

TEST_F(FewerInputsTest, AnInputThatIsNotSentKeepsItsPlace) {
  std::vector<std::string> texts = Texts(8);
  for (const int at : {0, 1, 6}) texts[at] = "not utf-8 \xff";
  EmbedOptions embed;
  embed.on_error = v1::ON_ERROR_PER_INPUT;
  const auto matrix = Connect()->Embed(texts, embed);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  for (int i = 0; i < 8; ++i) {
    const bool bad = i < 2 || i == 6;
    EXPECT_EQ(GetReason(matrix->errors[i]), bad ? "INVALID_UTF8" : "") << i;
    if (bad) continue;
    EXPECT_THAT(matrix->row(i), ElementsAreArray(FakeVector(texts[i]))) << i;
  }
}

TEST_F(FewerInputsTest, AStreamIsSentInRequestsThatTheServerTakes) {
  const std::vector<std::string> texts = Texts(100);
  BulkOptions options;
  options.texts_per_call = 8;
  options.calls_in_flight = 2;
  size_t next = 0, done = 0;
  const absl::Status status = Connect()->EmbedBulk(
      {[&](v1::Input* input, absl::Status*) {
        if (next == texts.size()) return false;
        input->set_text(texts[next++]);
        return true;
      }},
      {}, options, [&](const BulkAnswer& answer) {
        EXPECT_EQ(answer.first_input, static_cast<int64_t>(done));
        for (size_t i = 0; i < answer.errors.size(); ++i, ++done) {
          EXPECT_TRUE(answer.errors[i].ok()) << answer.errors[i];
          const std::vector<float> values = FakeVector(texts[done]);
          EXPECT_EQ(answer.embeddings[i].packed(),
                    std::string(reinterpret_cast<const char*>(values.data()),
                                values.size() * sizeof(float)));
        }
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(done, texts.size());
  ExpectTwoRefused(service_.call_sizes());
  EXPECT_EQ(service_.streams(), 1);
}

TEST_F(FewerInputsTest, StatesOfAnInputThatIsNotSentKeepTheirPlace) {
  std::vector<std::string> texts = Texts(8);
  for (const int at : {0, 1, 6}) texts[at] = "not utf-8 \xff";
  EncodeOptions encode;
  encode.on_error = v1::ON_ERROR_PER_INPUT;
  const auto states = Connect()->Encode(texts, encode);
  ASSERT_TRUE(states.ok()) << states.status();
  ASSERT_EQ(states->size(), 8u);
  for (int i = 0; i < 8; ++i) {
    const bool bad = i < 2 || i == 6;
    EXPECT_EQ(GetReason((*states)[i].error), bad ? "INVALID_UTF8" : "") << i;
    EXPECT_EQ((*states)[i].rows, bad ? 0 : 4) << i;
  }
}

TEST_F(FewerInputsTest, AServerThatTakesNoneEndsTheList) {
  service_.FailNext(1 << 30,
                    FakeError(grpc::StatusCode::INVALID_ARGUMENT, "too many",
                              kTooManyInputs, {{"limit", "0"}}));
  EXPECT_EQ(GetReason(Connect()->Embed(Texts(20)).status()), kTooManyInputs);
  EXPECT_LE(service_.embed_calls(), 2 * 4);
}

}  // namespace
}  // namespace encoderd::client
