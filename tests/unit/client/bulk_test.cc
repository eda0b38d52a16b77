// EmbedBulk: order, bounded window, broken streams, refused requests.
#include "client/cpp/bulk.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "client/cpp/error.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/held_port.h"
#include "tests/support/patience.h"

namespace encoderd::client {
namespace {

using encoderd::testing::FakeEncoderService;
using encoderd::testing::FakeError;
using encoderd::testing::FakeVector;
using ::testing::HasSubstr;

constexpr int kTexts = 500;

class BulkTest : public ::testing::Test {
 protected:
  BulkTest() {
    options_.texts_per_call = 4;
    options_.calls_in_flight = 8;
    for (int i = 0; i < kTexts; ++i) texts_.push_back(absl::StrCat("text ", i));
  }

  // Embeds texts_; what came is in vectors_ and errors_.
  absl::Status Run(const std::function<void(int64_t done)>& after = nullptr) {
    const auto client = Client::Connect(service_->target(), connection_);
    EXPECT_TRUE(client.ok()) << client.status();
    size_t next = 0;
    return (*client)->EmbedBulk(
        {[&](v1::Input* input, absl::Status*) {
          if (next == texts_.size()) return false;
          input->set_text(texts_[next++]);
          return true;
        }},
        embed_, options_, [&](const BulkAnswer& answer) {
          EXPECT_EQ(answer.first_input, static_cast<int64_t>(vectors_.size()));
          for (size_t i = 0; i < answer.errors.size(); ++i) {
            vectors_.push_back(answer.embeddings[i].packed());
            errors_.push_back(answer.errors[i]);
          }
          if (after != nullptr) after(static_cast<int64_t>(vectors_.size()));
          return absl::OkStatus();
        });
  }

  void ExpectAll() const {
    ASSERT_EQ(vectors_.size(), texts_.size());
    for (size_t i = 0; i < texts_.size(); ++i) {
      const std::vector<float> values = FakeVector(texts_[i]);
      EXPECT_EQ(vectors_[i],
                std::string(reinterpret_cast<const char*>(values.data()),
                            values.size() * sizeof(float)))
          << i;
    }
  }

  // That two requests refused with `error` cost nothing, not even the stream.
  void ExpectAllAfter(const grpc::Status& error) {
    service_->FailNext(2, error);
    const absl::Status status = Run();
    ASSERT_TRUE(status.ok()) << status;
    ExpectAll();
    EXPECT_EQ(service_->streams(), 1);
  }

  // Texts that a broken stream may have carried for nothing.
  int64_t Window() const {
    return int64_t{options_.texts_per_call} * options_.calls_in_flight;
  }

  std::unique_ptr<FakeEncoderService> service_ =
      std::make_unique<FakeEncoderService>();
  ClientOptions connection_;
  EmbedOptions embed_;
  BulkOptions options_;
  std::vector<std::string> texts_;
  std::vector<std::string> vectors_;
  std::vector<absl::Status> errors_;
};

TEST_F(BulkTest, GivesEveryTextOnceAndInOrderOverOneStream) {
  ASSERT_TRUE(Run().ok());
  ExpectAll();
  EXPECT_EQ(service_->stream_texts(), kTexts);
  EXPECT_EQ(service_->streams(), 1);
}

TEST_F(BulkTest, AnEmptyListNeedsNoServer) {
  texts_.clear();
  service_.reset();
  service_ = std::make_unique<FakeEncoderService>();
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(service_->streams(), 0);
}

TEST_F(BulkTest, SendsOnlyWhatWasNotAnsweredOnceMoreWhenStreamsBreak) {
  service_->BreakStreams(3, 20);
  const absl::Status status = Run();
  ASSERT_TRUE(status.ok()) << status;
  ExpectAll();
  EXPECT_EQ(service_->streams(), 4);
  EXPECT_LE(service_->stream_texts(), kTexts + 3 * Window());
}

// As a server does whose answers stay unread while its memory is short.
TEST_F(BulkTest, OpensAnotherStreamWhereTheServerResetOne) {
  service_->BreakStreams(1, 20, grpc::Status(grpc::StatusCode::CANCELLED, ""));
  const absl::Status status = Run();
  ASSERT_TRUE(status.ok()) << status;
  ExpectAll();
  EXPECT_EQ(service_->streams(), 2);
}

TEST_F(BulkTest, SurvivesARestartOfTheServer) {
  const HeldPort port;
  service_ = std::make_unique<FakeEncoderService>(port.port());
  int64_t before = 0;
  const absl::Status status = Run([&](int64_t done) {
    if (before > 0 || done < 100) return;
    before = service_->stream_texts();
    service_.reset();
    service_ = std::make_unique<FakeEncoderService>(port.port());
    ASSERT_EQ(service_->port(), port.port());
  });
  ASSERT_TRUE(status.ok()) << status;
  ExpectAll();
  EXPECT_LE(before + service_->stream_texts(), kTexts + 2 * Window());
}

// One job must not hold vectors of two models.
TEST_F(BulkTest, EndsWhenTheRestartedServerHasAnotherModel) {
  const HeldPort port;
  service_ = std::make_unique<FakeEncoderService>(port.port());
  bool restarted = false;
  const absl::Status status = Run([&](int64_t done) {
    if (restarted || done < 100) return;
    restarted = true;
    service_.reset();
    service_ = std::make_unique<FakeEncoderService>(port.port());
    service_->SetPooling(v1::POOLING_CLS);
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(status.message(), HasSubstr("changed during the job"));
  EXPECT_LT(vectors_.size(), texts_.size());
}

TEST_F(BulkTest, EndsWithAModelOtherThanTheExpected) {
  embed_.fingerprint = "another";
  EXPECT_EQ(Run().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(vectors_.empty());
}

TEST_F(BulkTest, WaitsWhereTheQueueIsFull) {
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_nanos(5'000'000);
  const grpc::Status full = FakeError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                      "the queue is full", "QUEUE_FULL", {});
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(full.error_details()));
  details.add_details()->PackFrom(retry);
  service_->FailNext(30, grpc::Status(full.error_code(), full.error_message(),
                                      details.SerializeAsString()));
  const absl::Status status = Run();
  ASSERT_TRUE(status.ok()) << status;
  ExpectAll();
}

TEST_F(BulkTest, ABadTextCostsItsOwnAnswerOnly) {
  texts_[7] = "a b c d e f g";
  texts_[9] = "not utf-8 \xff";
  texts_[11] = "";
  const absl::Status status = Run();
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(errors_.size(), texts_.size());
  for (const int bad : {7, 9, 11}) {
    EXPECT_EQ(GetInputIndex(errors_[bad]), bad);
    EXPECT_THAT(std::string(errors_[bad].message()),
                HasSubstr(absl::StrCat("inputs[", bad, "]")));
    texts_.erase(texts_.begin() + bad);
    vectors_.erase(vectors_.begin() + bad);
    texts_.insert(texts_.begin() + bad, "good");
    const std::vector<float> good = FakeVector("good");
    vectors_.insert(vectors_.begin() + bad,
                    std::string(reinterpret_cast<const char*>(good.data()),
                                good.size() * sizeof(float)));
  }
  ExpectAll();
}

TEST_F(BulkTest, WhatTryingAgainDoesNotHelpEndsTheWork) {
  service_->FailNext(1, FakeError(grpc::StatusCode::NOT_FOUND, "no prompt",
                                  "PROMPT_NOT_FOUND", {}));
  EXPECT_EQ(Run().code(), absl::StatusCode::kNotFound);
}

TEST_F(BulkTest, FillsTheRoomInItsWindowBeforeItWaits) {
  options_.texts_per_call = options_.calls_in_flight = 1;
  // Asked once before each input, and once more before each wait.
  int asked_since_answer = 0;
  options_.stop = [&] { return ++asked_since_answer < 0; };
  const auto client = Client::Connect(service_->target(), connection_);
  ASSERT_TRUE(client.ok()) << client.status();
  int given = 0;
  const absl::Status status =
      (*client)->EmbedBulk({[&](v1::Input* input, absl::Status*) {
                             if (given > 0) {
                               EXPECT_EQ(asked_since_answer, 1) << given;
                             }
                             input->set_text("text");
                             return given++ < 20;
                           }},
                           {}, options_, [&](const BulkAnswer&) {
                             asked_since_answer = 0;
                             return absl::OkStatus();
                           });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(BulkTest, StopsWhenAsked) {
  options_.stop = [this] { return vectors_.size() >= 40; };
  EXPECT_TRUE(absl::IsCancelled(Run()));
  EXPECT_GE(vectors_.size(), 40u);
  EXPECT_LT(vectors_.size(), texts_.size());
}

TEST_F(BulkTest, LosesPatienceAndReturnsTheLastError) {
  connection_.service_config_json = "{}";  // gRPC itself tries once
  service_->BreakStreams(1 << 30, 0);
  EXPECT_TRUE(GivenEnoughTime([&](absl::Duration time) {
    options_.patience = time;
    const absl::Status status = Run();
    // It saw no stream break in that time.
    if (absl::IsDeadlineExceeded(status)) return false;
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(GetErrorDetails(status)->reason, "DRAINING");
    return true;
  }));
}

// Where a caller takes longer than a server may be silent.
struct SlowCaller {
  const char* name;
  int source_waits_at;    // texts given before; -1: never
  int64_t sink_waits_at;  // rows taken before
};

class SlowCallerTest : public BulkTest,
                       public ::testing::WithParamInterface<SlowCaller> {};

TEST_P(SlowCallerTest, IsNotASilentServer) {
  constexpr int kFew = 40;
  options_.texts_per_call = 1;
  const auto client = Client::Connect(service_->target(), connection_);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE(GivenEnoughTime([&](absl::Duration time) {
    options_.patience = time;
    int given = 0;
    int64_t rows = 0;
    const absl::Status status = (*client)->EmbedBulk(
        {[&](v1::Input* input, absl::Status*) {
          if (given == GetParam().source_waits_at) absl::SleepFor(1.5 * time);
          input->set_text("text");
          return given++ < kFew;
        }},
        {}, options_, [&](const BulkAnswer& answer) {
          if (rows == GetParam().sink_waits_at) absl::SleepFor(1.5 * time);
          rows += static_cast<int64_t>(answer.errors.size());
          return absl::OkStatus();
        });
    // The server's own part took longer than that.
    if (absl::IsDeadlineExceeded(status)) return false;
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(rows, kFew);
    return true;
  }));
}

INSTANTIATE_TEST_SUITE_P(Bulk, SlowCallerTest,
                         ::testing::Values(SlowCaller{"Source", 1, -1},
                                           SlowCaller{"Sink", -1, 0}),
                         [](const auto& info) { return info.param.name; });

TEST_F(BulkTest, WhatGrpcRefusesForOtherReasonsThanSizeIsNotSentAgain) {
  connection_.service_config_json = "{}";  // gRPC itself tries once
  service_->BreakStreams(
      1 << 30, 0,
      grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "no memory is left"));
  const absl::Status status = Run();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(service_->streams(), 1);
}

TEST_F(BulkTest, ATextThatNoMessageHoldsCostsItsOwnAnswerOnly) {
  connection_.service_config_json = "{}";  // gRPC itself tries once
  texts_.resize(40);
  for (const int large : {0, 17, 18}) texts_[large].assign(5 << 20, 'x');
  const absl::Status status = Run();
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(errors_.size(), texts_.size());
  for (int i = 0; i < 40; ++i) {
    if (texts_[i].size() < 100) {
      EXPECT_TRUE(errors_[i].ok()) << i << errors_[i];
      continue;
    }
    EXPECT_TRUE(absl::IsInvalidArgument(errors_[i])) << errors_[i];
    EXPECT_EQ(GetInputIndex(errors_[i]), i);
    EXPECT_EQ(GetErrorDetails(errors_[i])->reason, "REQUEST_TOO_LARGE");
    EXPECT_THAT(std::string(errors_[i].message()),
                HasSubstr(absl::StrCat("inputs[", i, "] makes a message of")));
  }
}

TEST_F(BulkTest, ACallThatIsTooLargeOnlyAsAWholeGoesInHalves) {
  connection_.service_config_json = "{}";  // gRPC itself tries once
  options_.texts_per_call = 8;
  options_.calls_in_flight = 2;
  options_.bytes_per_call = 64 << 20;
  texts_.resize(20);
  for (std::string& text : texts_) text.resize(900000, 'x');
  texts_[3] = "not utf-8 \xff";
  const absl::Status status = Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(GetInputIndex(errors_[3]), 3);
  texts_.erase(texts_.begin() + 3);
  vectors_.erase(vectors_.begin() + 3);
  errors_.erase(errors_.begin() + 3);
  for (const absl::Status& error : errors_) EXPECT_TRUE(error.ok()) << error;
  ExpectAll();
}

TEST_F(BulkTest, WhatTheQueueCannotHoldAsAWholeGoesInHalves) {
  ExpectAllAfter(FakeError(grpc::StatusCode::INVALID_ARGUMENT,
                           "more than the whole queue", "REQUEST_TOO_LARGE",
                           {}));
}

TEST_F(BulkTest, MoreInputsThanTheServerTakesGoInHalves) {
  ExpectAllAfter(FakeError(grpc::StatusCode::INVALID_ARGUMENT,
                           "more than 4 inputs", "TOO_MANY_INPUTS", {}));
}

TEST_F(BulkTest, ARequestThatExpiredInTheQueueIsSentAgain) {
  ExpectAllAfter(FakeError(grpc::StatusCode::DEADLINE_EXCEEDED,
                           "waited for too long", "EXPIRED_IN_QUEUE", {}));
}

TEST_F(BulkTest, NamesTheErrorThatDidNotPassInTime) {
  service_->FailNext(1 << 30,
                     FakeError(grpc::StatusCode::DEADLINE_EXCEEDED,
                               "waited for too long", "EXPIRED_IN_QUEUE", {}));
  EXPECT_TRUE(GivenEnoughTime([&](absl::Duration time) {
    options_.patience = time;
    return GetReason(Run()) == "EXPIRED_IN_QUEUE";
  }));
}

TEST_F(BulkTest, PassesTheOptionsOn) {
  embed_.windows = 3;
  embed_.encoding = v1::ENCODING_INT8;
  embed_.ranges.add_minimum(-1);
  embed_.ranges.add_maximum(1);
  texts_[5] = "a b c d e f g";
  const absl::Status status = Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(errors_[5].ok()) << errors_[5];
  const v1::EmbedOptions sent = service_->last_options();
  EXPECT_EQ(sent.windows().overlap(), 3u);
  EXPECT_EQ(sent.encoding(), v1::ENCODING_INT8);
  EXPECT_EQ(sent.ranges().minimum_size(), 1);
  EXPECT_EQ(sent.on_error(), v1::ON_ERROR_PER_INPUT);
}

TEST_F(BulkTest, RefusesAWindowThatTheServerWouldNotRead) {
  options_.calls_in_flight = 65;
  EXPECT_THAT(std::string(Run().message()), HasSubstr("from 1 to 64"));
}

TEST_F(BulkTest, RefusesToHaveNoPatience) {
  options_.patience = absl::ZeroDuration();
  EXPECT_EQ(Run().message(), "patience is 0; it must be more than 0");
}

}  // namespace
}  // namespace encoderd::client
