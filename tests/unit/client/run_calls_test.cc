// Calls of a list that a server refuses: which are made again, when, and what
// is said of those that are not.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/calls.h"
#include "client/cpp/client.h"
#include "client/cpp/client_settings.h"
#include "client/cpp/error.h"
#include "client/cpp/steady_time.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/time_util.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/held_port.h"

namespace encoderd::client {
namespace {

using encoderd::testing::FakeEncoderService;
using ::testing::ElementsAre;
using OneCall = Call<v1::EmbedRequest, v1::EmbedResponse>;

// A refusal as servers send it. pause_ms less than 0: it names none.
grpc::Status Refusal(grpc::StatusCode code, const std::string& reason,
                     int64_t pause_ms) {
  google::rpc::Status status;
  status.set_code(static_cast<int>(code));
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  status.add_details()->PackFrom(info);
  if (pause_ms >= 0) {
    google::rpc::RetryInfo retry;
    *retry.mutable_retry_delay() =
        google::protobuf::util::TimeUtil::MillisecondsToDuration(pause_ms);
    status.add_details()->PackFrom(retry);
  }
  return {code, reason, status.SerializeAsString()};
}

grpc::Status Full(int64_t pause_ms) {
  return Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, "QUEUE_FULL", pause_ms);
}

class RunCallsTest : public ::testing::Test {
 protected:
  // Of `count` inputs, a call each. start: begins attempt `attempt`, from 1 on,
  // of the call of input `input`.
  absl::Status Run(
      int count,
      const std::function<void(int input, int attempt, OneCall* call)>& start,
      bool per_input = false) {
    int made = 0;
    return RunCalls<v1::EmbedRequest, v1::EmbedResponse>(
        {/*max_in_flight=*/8, timeout_, stop_, per_input, nullptr,
         await_return_},
        [&](v1::EmbedRequest* request) {
          Cut cut;
          if (made == count) return cut;
          request->add_inputs()->set_text(text_);
          cut.first_input = made++;
          cut.sent_as.push_back(0);
          cut.errors.emplace_back();
          return cut;
        },
        [&](OneCall* call) {
          const auto input = static_cast<int>(call->cut.first_input);
          started_[input].push_back(SteadyNow());
          start(input, static_cast<int>(started_[input].size()), call);
        },
        [&](const OneCall& call) {
          finished_.push_back(call.cut.first_input);
          errors_.push_back(call.cut.errors[0]);
          return absl::OkStatus();
        });
  }

  static void End(OneCall* call, const grpc::Status& status = {}) {
    call->status = status;
    call->done->Notify();
  }

  // A test that would wait without end fails instead.
  const absl::Time end_ = SteadyNow() + absl::Seconds(60);
  std::function<bool()> stop_ = [this] { return SteadyNow() > end_; };
  absl::Duration timeout_ = absl::Hours(2);
  std::function<bool(const absl::Status&)> await_return_;
  std::string text_ = "one";
  std::map<int, std::vector<absl::Time>> started_;  // attempts, by input
  std::vector<int64_t> finished_;
  std::vector<absl::Status> errors_;
};

TEST_F(RunCallsTest, SendsARefusedCallNoMoreOnceItIsStopped) {
  int asked = 0;
  // Not while the call is in flight, but in the pause after its refusal.
  stop_ = [&] { return ++asked > 1; };
  const absl::Status status = Run(3, [](int, int, OneCall* call) {
    End(call, Refusal(grpc::StatusCode::UNAVAILABLE, "LOADING", 3600 * 1000));
  });
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  for (int input = 0; input < 3; ++input) EXPECT_EQ(started_[input].size(), 1u);
}

TEST_F(RunCallsTest, KeepsThePauseOfEachRefusedCall) {
  const absl::Status status = Run(2, [](int input, int attempt, OneCall* call) {
    End(call, attempt == 1 ? Full(input == 0 ? 1 : 400) : grpc::Status());
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(finished_, ElementsAre(0, 1));
  ASSERT_EQ(started_[1].size(), 2u);
  EXPECT_GE(started_[1][1] - started_[1][0], absl::Milliseconds(400));
}

TEST_F(RunCallsTest, SendsARefusedCallAgainWhileOneBeforeItIsInFlight) {
  OneCall* first = nullptr;
  const absl::Status status =
      Run(2, [&](int input, int attempt, OneCall* call) {
        if (input == 0) {
          first = call;
        } else if (attempt == 1) {
          End(call, Full(10));
        } else {
          End(call);
          End(first);
        }
      });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(finished_, ElementsAre(0, 1));
}

// A connection that broke, and what servers that shut down send.
const grpc::Status kBroken(grpc::StatusCode::UNAVAILABLE, "Socket closed");

TEST_F(RunCallsTest, AwaitsTheReturnOfAServerThatAnsweredBefore) {
  for (const grpc::Status& gone :
       {kBroken, Refusal(grpc::StatusCode::UNAVAILABLE, "DRAINING", 1000)}) {
    started_.clear();
    finished_.clear();
    int asked = 0;
    await_return_ = [&](const absl::Status& status) {
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      ++asked;
      return true;
    };
    const absl::Status status =
        Run(9, [&](int input, int attempt, OneCall* call) {
          End(call, input == 8 && attempt < 3 ? gone : grpc::Status());
        });
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(finished_.size(), 9u);
    ASSERT_EQ(started_[8].size(), 3u);
    EXPECT_GE(started_[8][2] - started_[8][1], gone.error_details().empty()
                                                   ? absl::Milliseconds(500)
                                                   : absl::Seconds(1));
    EXPECT_EQ(asked, 2);
  }
}

// Whichever of them is looked at first.
TEST_F(RunCallsTest, AwaitsTheReturnOfAServerThatAnsweredALaterCall) {
  await_return_ = [](const absl::Status&) { return true; };
  const absl::Status status = Run(3, [](int input, int attempt, OneCall* call) {
    End(call, input != 1 && attempt == 1 ? kBroken : grpc::Status());
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(finished_, ElementsAre(0, 1, 2));
}

TEST_F(RunCallsTest, DecidesOnALaterCallOnceTheFirstIsAnswered) {
  for (const bool wait : {true, false}) {
    started_.clear();
    int asked = 0, stop_asked = 0;
    await_return_ = [&](const absl::Status&) { return ++asked > 0 && wait; };
    OneCall* first = nullptr;
    // Ends the first call some time after the second was refused.
    stop_ = [&] {
      if (++stop_asked == 3) {
        EXPECT_EQ(asked, 0);
        End(first);
      }
      return false;
    };
    const absl::Status status =
        Run(2, [&](int input, int attempt, OneCall* call) {
          if (input == 0) {
            first = call;
          } else {
            End(call, attempt == 1 ? kBroken : grpc::Status());
          }
        });
    EXPECT_EQ(status.ok(), wait) << status;
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(started_[1].size(), wait ? 2u : 1u);
  }
}

TEST_F(RunCallsTest, EndsWhereNoServerEverAnsweredOrNobodyAwaitsItsReturn) {
  const auto none_answers = [](int, int, OneCall* call) { End(call, kBroken); };
  const auto first_answers = [](int input, int, OneCall* call) {
    End(call, input == 0 ? grpc::Status() : kBroken);
  };
  EXPECT_TRUE(absl::IsUnavailable(Run(3, first_answers)));
  await_return_ = [](const absl::Status&) { return false; };
  EXPECT_TRUE(absl::IsUnavailable(Run(3, first_answers)));
  await_return_ = [](const absl::Status&) -> bool {
    ADD_FAILURE() << "nobody is to be asked";
    return true;
  };
  EXPECT_TRUE(absl::IsUnavailable(Run(3, none_answers)));
  EXPECT_EQ(started_[2].size(), 3u);
}

TEST_F(RunCallsTest, AwaitsTheReturnOfAServerThatCancelledACall) {
  const auto start = [](int input, int attempt, OneCall* call) {
    const bool ends = input == 1 && attempt == 1;
    End(call, {ends ? grpc::StatusCode::CANCELLED : grpc::StatusCode::OK, ""});
  };
  EXPECT_TRUE(absl::IsCancelled(Run(2, start)));
  await_return_ = [](const absl::Status&) { return true; };
  started_.clear();
  const absl::Status status = Run(2, start);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(started_[1].size(), 2u);
}

TEST_F(RunCallsTest, AwaitsAServersReturnNoLongerThanTheTimeout) {
  timeout_ = absl::Seconds(1);
  await_return_ = [](const absl::Status&) { return true; };
  const absl::Status status = Run(2, [](int input, int, OneCall* call) {
    End(call, input == 0 ? grpc::Status() : kBroken);
  });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(finished_, ElementsAre(0));
}

TEST_F(RunCallsTest, EndsWithADeadlineThatTheServerExplains) {
  const grpc::Status expired =
      Refusal(grpc::StatusCode::DEADLINE_EXCEEDED, "EXPIRED_IN_QUEUE", -1);
  const absl::Status status = Run(1, [&](int, int attempt, OneCall* call) {
    End(call, attempt == 1 ? Full(5) : expired);
  });
  EXPECT_EQ(GetReason(status), "EXPIRED_IN_QUEUE") << status;
  EXPECT_EQ(started_[0].size(), 2u);
}

TEST_F(RunCallsTest, ExplainsTheClientsOwnDeadlineByTheRefusalBeforeIt) {
  timeout_ = absl::Milliseconds(200);
  const absl::Status status = Run(1, [](int, int attempt, OneCall* call) {
    if (attempt == 1) return End(call, Full(5));
    absl::SleepFor(call->deadline - SteadyNow());
    End(call, grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, ""));
  });
  EXPECT_EQ(GetReason(status), "QUEUE_FULL") << status;
}

TEST_F(RunCallsTest, SendsALongRequestAsOftenAsGrpcSendsOthers) {
  const auto attempts = [this](const grpc::Status& refusal, int refusals) {
    started_.clear();
    (void)Run(1, [&](int, int attempt, OneCall* call) {
      End(call, attempt <= refusals ? refusal : grpc::Status());
    });
    return started_[0].size();
  };
  const grpc::Status gone(grpc::StatusCode::UNAVAILABLE, "gone");
  EXPECT_EQ(attempts(gone, 9), 1u);  // gRPC has sent it five times
  text_ = std::string(settings::kRetryBufferBytes, 'x');
  EXPECT_EQ(attempts(gone, 1), 2u);
  EXPECT_GE(started_[0][1] - started_[0][0], absl::Milliseconds(100));
  EXPECT_EQ(attempts(Refusal(grpc::StatusCode::UNAVAILABLE, "DRAINING", 1), 9),
            5u);
  EXPECT_EQ(attempts(Full(-1), 1), 2u);
  // Attempts that the server asks for, with a pause, are not among the five.
  started_.clear();
  (void)Run(1, [&](int, int attempt, OneCall* call) {
    End(call, attempt <= 6
                  ? Full(1)
                  : Refusal(grpc::StatusCode::UNAVAILABLE, "DRAINING", 1));
  });
  EXPECT_EQ(started_[0].size(), 6u + 5u);
  for (const auto& stays :
       {grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                     "Received message larger than max (5 vs. 4)"),
        grpc::Status(grpc::StatusCode::INTERNAL, "")}) {
    EXPECT_EQ(attempts(stays, 9), 1u);
  }
}

TEST_F(RunCallsTest, EndsALongRequestWithTheErrorOfItsLastAttempt) {
  text_ = std::string(settings::kRetryBufferBytes, 'x');
  const absl::Status status = Run(1, [](int, int attempt, OneCall* call) {
    End(call, Refusal(grpc::StatusCode::UNAVAILABLE,
                      absl::StrCat("REASON_", attempt), 1));
  });
  EXPECT_EQ(GetReason(status), "REASON_5") << status;
}

TEST_F(RunCallsTest, NamesTheInputThatTheServerFindsTooLarge) {
  const auto start = [](int input, int, OneCall* call) {
    End(call, input == 1 ? Refusal(grpc::StatusCode::INVALID_ARGUMENT,
                                   kRequestTooLarge, -1)
                         : grpc::Status());
  };
  const absl::Status status = Run(3, start);
  EXPECT_EQ(GetReason(status), kRequestTooLarge) << status;
  EXPECT_EQ(GetInputIndex(status), 1);
  EXPECT_THAT(finished_, ElementsAre(0));
  finished_.clear();
  errors_.clear();
  ASSERT_TRUE(Run(3, start, /*per_input=*/true).ok());
  EXPECT_THAT(finished_, ElementsAre(0, 1, 2));
  EXPECT_EQ(GetInputIndex(errors_[1]), 1);
}

// Away for some seconds, which calls spend waiting for a connection: each is
// asked about once. With the same model, and with another.
TEST(AwaitReturnTest, AListOutlivesARestartOfTheServerButNoOtherModel) {
  for (const bool same : {true, false}) {
    const HeldPort port;
    auto service = std::make_unique<FakeEncoderService>(port.port());
    std::thread restart;
    int asked = 0;
    ClientOptions options;
    options.texts_per_call = 1;
    options.await_return = [&](const absl::Status&) {
      if (asked++ > 0) return true;
      restart = std::thread([&] {
        absl::SleepFor(absl::Seconds(3));
        service = std::make_unique<FakeEncoderService>(port.port());
        if (!same) service->SetPooling(v1::POOLING_CLS);
      });
      return true;
    };
    const auto client = Client::Connect(service->target(), options);
    ASSERT_TRUE(client.ok()) << client.status();
    int given = 0;
    int64_t rows = 0;
    const absl::Status status = (*client)->EmbedEach(
        {[&given](v1::Input* input, absl::Status*) -> absl::StatusOr<bool> {
          input->set_text("one");
          return given++ < 40;
        }},
        {}, [&](const EmbeddingMatrix& matrix) {
          if (rows == 0) service.reset();
          rows += matrix.rows;
          return absl::OkStatus();
        });
    ASSERT_TRUE(restart.joinable()) << status;
    restart.join();
    EXPECT_LE(asked, options.calls_in_flight);
    if (same) {
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(rows, 40);
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    }
  }
}

}  // namespace
}  // namespace encoderd::client
