// Memory that runs out, while a model is loaded and while a request is served,
// at any allocation that their size decides. What fails says so, nothing waits
// forever, and the next one works.
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/cgroup.h"
#include "engine/checkpoint/weight_bytes.h"
#include "engine/model.h"
#include "grpcpp/generic/generic_stub.h"
#include "tests/support/fake_model.h"
#include "tests/support/faults.h"
#include "tests/support/patience.h"
#include "tests/support/random_checkpoint.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

using absl::StatusCode;

// Calls `attempt` again and again, each time after `prepare`; each time another
// of the allocations of at least min_bytes that this thread makes in it fails,
// `rounds` of them, evenly spread.
void FailOneAllocation(size_t min_bytes, int rounds,
                       const std::function<void()>& prepare,
                       const std::function<absl::Status()>& attempt,
                       const std::function<void(const absl::Status&)>& check) {
  Fault fault = {.after = INT_MAX, .min_bytes = min_bytes, .may_miss = true};
  prepare();
  int allocations = 0;
  {
    const ScopedFault count(FaultPoint::kAllocation, fault);
    ASSERT_THAT(attempt(), IsOk());
    allocations = count.meant();
  }
  ASSERT_GT(allocations, 0);  // else nothing is checked
  bool struck = true;
  for (fault.after = 0; struck;
       fault.after += std::max(allocations / rounds, 1)) {
    SCOPED_TRACE(absl::StrCat("allocation ", fault.after, " of ", allocations));
    prepare();
    absl::Status status;
    {
      const ScopedFault now(FaultPoint::kAllocation, fault);
      status = attempt();
      struck = now.struck() > 0;
    }
    if (struck) {
      check(status);
    } else {
      EXPECT_THAT(status, IsOk());
    }
  }
}

// The destructors of nlohmann's JSON allocate as much as their objects have
// members, and end the process where they cannot.
constexpr size_t kMoreThanJson = 1024;

TEST(FaultMemoryTest, AModelThatThereIsNoMemoryForIsRefused) {
  const TempFolder folder;
  WriteCheckpoint(CheckpointSpecOf("positions100"), folder.path());
  const auto load = [&] {
    return Model::Load(folder.path(), {.device = "cpu"}).status();
  };
  int refused = 0;
  int unneeded = 0;  // what a standard stream reads of the system, wasted
  FailOneAllocation(
      kMoreThanJson, Rounds(1000), [] {}, load,
      [&](const absl::Status& status) {
        ++(status.ok() ? unneeded : refused);
        if (status.ok()) return;
        EXPECT_THAT(status,
                    IsError(StatusCode::kResourceExhausted, "no memory "));
      });
  EXPECT_GT(refused, unneeded);
}

TEST(FaultMemoryTest, WeightsWhoseSizeThereIsNoMemoryForHaveNone) {
  const TempFolder folder;
  WriteCheckpoint(CheckpointSpecOf("positions100"), folder.path());
  const int64_t all = WeightBytes(folder.path());
  ASSERT_GT(all, 0);
  int64_t bytes = 0;
  FailOneAllocation(
      kMoreThanJson, Rounds(1000), [] {},
      [&] {
        bytes = WeightBytes(folder.path());
        return absl::OkStatus();
      },
      [&](const absl::Status&) { EXPECT_TRUE(bytes == 0 || bytes == all); });
}

TEST(FaultMemoryTest, AServerThatThereIsNoMemoryForServesNoModel) {
  const auto model = FakeModel::Load({}, {}).value();
  const ModelLoader loader = [&](const std::string&, const ModelOptions&)
      -> absl::StatusOr<std::shared_ptr<const Model>> { return model; };
  std::unique_ptr<TestServer> server;
  FailOneAllocation(
      1, Rounds(60),
      [&] {
        server = std::make_unique<TestServer>(TestServer::NotLoaded(),
                                              FakeModelOptions());
      },
      [&] { return server->server().Load(loader, kNoMemoryLimit); },
      [&](const absl::Status& status) {
        EXPECT_THAT(status, IsError(StatusCode::kInternal, "bad_alloc"));
        EXPECT_FALSE(server->server().serving());
      });
}

// Above what gRPC and we allocate whatever is asked for.
constexpr size_t kLarge = 4096;

// Makes `call` with its own server, again and again; each time the next of
// the large allocations that it takes, on whatever thread, fails.
void FailLargeAllocations(
    const std::function<void(TestServer& server)>& call,
    const std::function<bool(TestServer& server)>& check_and_call_again) {
  FakeModelOptions fake;
  fake.hidden_size = 64;
  bool struck = true;
  int after = 0;
  for (; struck; ++after) {
    ASSERT_LT(after, 1000);
    SCOPED_TRACE(absl::StrCat("large allocation ", after));
    TestServer server(fake);
    server.model().device().SetLogging(false);
    ASSERT_TRUE(server.CallRaw("ListModels", "").ok());  // it is connected
    {
      const ScopedFault fault(FaultPoint::kAllocation,
                              {.after = after,
                               .min_bytes = kLarge,
                               .thread = Fault::kAnyThread,
                               .may_miss = true});
      call(server);
      struck = fault.struck() > 0;
    }
    ASSERT_TRUE(check_and_call_again(server));
  }
  EXPECT_GT(after, 3);
}

void ExpectNoMemory(RpcError error) {
  EXPECT_EQ(error.code, grpc::StatusCode::INTERNAL) << error.message;
  EXPECT_TRUE(error.reason == "INTERNAL_FAULT" ||
              error.reason == "DEVICE_FAULT")
      << error.reason;
  EXPECT_FALSE(error.metadata["error_id"].empty());
}

void FailCalls(const std::string& method,
               const google::protobuf::Message& request) {
  const std::string bytes = request.SerializeAsString();
  grpc::Status status;
  int failed = 0;
  FailLargeAllocations(
      [&](TestServer& server) { status = server.CallRaw(method, bytes); },
      [&](TestServer& server) {
        if (!status.ok()) {
          ++failed;
          ExpectNoMemory(ReadError(status));
        }
        return server.CallRaw(method, bytes).ok();
      });
  EXPECT_GT(failed, 0);
}

v1::EmbedRequest LargeText() {
  v1::EmbedRequest request = TextRequest({std::string(200 << 10, 'a')});
  request.mutable_options()->set_truncate(v1::TRUNCATE_END);
  return request;
}

v1::EmbedRequest ManyTexts() {
  v1::EmbedRequest request =
      TextRequest(std::vector<std::string>(1000, std::string(20, 'a')));
  request.mutable_inputs(0)->set_text(std::string(100 << 10, 'a'));
  request.mutable_options()->set_truncate(v1::TRUNCATE_END);
  return request;
}

TEST(FaultMemoryTest, ALargeTextFailsAlone) { FailCalls("Embed", LargeText()); }

TEST(FaultMemoryTest, ManyTextsFailAlone) { FailCalls("Embed", ManyTexts()); }

TEST(FaultMemoryTest, ErrorsOfSingleTextsTakeMemoryToo) {
  v1::EmbedRequest request = ManyTexts();
  request.mutable_options()->set_on_error(v1::ON_ERROR_PER_INPUT);
  request.mutable_options()->clear_truncate();
  FailCalls("Embed", request);
}

TEST(FaultMemoryTest, WindowsOfALongTextFailAlone) {
  v1::EmbedRequest request = TextRequest({std::string(20 << 10, 'a')});
  request.mutable_options()->mutable_windows()->set_overlap(100);
  FailCalls("Embed", request);
}

TEST(FaultMemoryTest, StatesOfLongTextsFailAlone) {
  v1::EncodeRequest request;
  for (int i = 0; i < 20; ++i) {
    request.add_inputs()->set_text(std::string(200, 'a'));
  }
  FailCalls("Encode", request);
}

TEST(FaultMemoryTest, TokensOfALongTextFailAlone) {
  v1::TokenizeRequest request;
  request.add_inputs()->set_text(std::string(4 << 10, 'a'));
  FailCalls("Tokenize", request);
}

TEST(FaultMemoryTest, AnInspectionFailsAlone) {
  v1::InspectPositionsRequest request;
  request.set_cosine(true);
  request.set_values(true);
  FailCalls("InspectPositions", request);
}

TEST(FaultMemoryTest, AScrapeThatThereIsNoMemoryForIsNotCutShort) {
  TestServer server;
  bool struck = true;
  int after = 0;
  for (; struck; ++after) {
    SCOPED_TRACE(absl::StrCat("large allocation ", after));
    const ScopedFault fault(FaultPoint::kAllocation, {.after = after,
                                                      .min_bytes = kLarge,
                                                      .thread = "http",
                                                      .may_miss = true});
    const int code = server.Get("/metrics").first;
    struck = fault.struck() > 0;
    EXPECT_EQ(code, struck ? 503 : 200);
  }
  EXPECT_GT(after, 3);
}

// EmbedStream in bytes: a client that parses would allocate, too.
class RawStream {
 public:
  explicit RawStream(TestServer* server) : stub_(server->channel()) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    stream_ = stub_.PrepareCall(&context_, "/encoderd.v1.Encoder/EmbedStream",
                                &queue_);
    stream_->StartCall(this);
    Wait();
  }
  ~RawStream() {
    stream_->WritesDone(this);
    Wait();
    grpc::Status status;
    stream_->Finish(&status, this);
    Wait();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  // The answer to one request.
  grpc::ByteBuffer Ask(const grpc::ByteBuffer& request) {
    stream_->Write(request, this);
    EXPECT_TRUE(Wait());
    grpc::ByteBuffer answer;
    stream_->Read(&answer, this);
    EXPECT_TRUE(Wait());
    return answer;
  }

 private:
  bool Wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

v1::EmbedResponse Parse(const grpc::ByteBuffer& bytes) {
  grpc::Slice slice;
  v1::EmbedResponse response;
  EXPECT_TRUE(bytes.DumpToSingleSlice(&slice).ok());
  EXPECT_TRUE(
      response.ParseFromArray(slice.begin(), static_cast<int>(slice.size())));
  return response;
}

// The stream goes on.
void FailInStreams(v1::EmbedRequest request) {
  request.set_request_id("id");
  const grpc::Slice slice(request.SerializeAsString());
  const grpc::ByteBuffer bytes(&slice, 1);
  std::unique_ptr<RawStream> stream;
  grpc::ByteBuffer answer;
  int failed = 0;
  FailLargeAllocations(
      [&](TestServer& server) {
        stream = std::make_unique<RawStream>(&server);
        answer = stream->Ask(bytes);
      },
      [&](TestServer&) {
        const v1::EmbedResponse response = Parse(answer);
        EXPECT_EQ(response.request_id(), "id");
        if (response.has_error()) {
          ++failed;
          ExpectNoMemory(ReadError(response.error()));
        }
        const bool answered = !Parse(stream->Ask(bytes)).has_error();
        stream.reset();
        return answered;
      });
  EXPECT_GT(failed, 0);
}

TEST(FaultMemoryTest, ALargeTextOfAStreamFailsAlone) {
  FailInStreams(LargeText());
}

TEST(FaultMemoryTest, ManyTextsOfAStreamFailAlone) {
  FailInStreams(ManyTexts());
}

}  // namespace
}  // namespace encoderd
