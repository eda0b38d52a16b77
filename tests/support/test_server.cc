#include "tests/support/test_server.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/cgroup.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "server/observe/metrics.h"
#include "server/rpc/grpc_log.h"
#include "server/rpc/status.h"
#include "tests/support/checked_channel.h"
#include "tests/support/loopback.h"
#include "tests/support/patience.h"
#include "tests/support/samples.h"

namespace encoderd {
namespace {

void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
}

}  // namespace

RpcError ReadError(const grpc::Status& status) {
  RpcError error;
  error.code = status.error_code();
  error.message = status.error_message();
  error.details_bytes = status.error_details().size();
  EXPECT_FALSE(error.message.empty()) << "code " << error.code;
  EXPECT_LE(error.details_bytes + error.message.size(), 4096u);
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  for (const google::protobuf::Any& any : details.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::BadRequest bad;
    google::rpc::RetryInfo retry;
    if (any.UnpackTo(&info)) {
      error.reason = info.reason();
      error.domain = info.domain();
      error.metadata.insert(info.metadata().begin(), info.metadata().end());
    } else if (any.UnpackTo(&bad)) {
      for (const auto& violation : bad.field_violations()) {
        error.violations.emplace_back(violation.field(),
                                      violation.description());
      }
    } else if (any.UnpackTo(&retry)) {
      error.retry_delay = absl::Seconds(retry.retry_delay().seconds()) +
                          absl::Nanoseconds(retry.retry_delay().nanos());
    }
  }
  EXPECT_EQ(error.domain, kErrorDomain) << status.error_message();
  v1::ErrorReason listed;
  EXPECT_TRUE(v1::ErrorReason_Parse("ERROR_REASON_" + error.reason, &listed))
      << "reason '" << error.reason << "' of: " << status.error_message();
  return error;
}

RpcError ReadError(const google::rpc::Status& status) {
  return ReadError(grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                                status.message(), status.SerializeAsString()));
}

ServerConfig TestConfig() {
  ServerConfig config;
  config.models = {{"fake", "fake"}};
  config.listen = "127.0.0.1:0";
  config.http_listen = "127.0.0.1:0";
  config.drain_timeout = kPatience;
  return config;
}

TestServer::TestServer(const FakeModelOptions& fake, const ServerConfig& config)
    : TestServer(NotLoaded(), fake, config) {
  const absl::Status status = Load();
  EXPECT_TRUE(status.ok()) << status;
}

TestServer::TestServer(NotLoaded, const FakeModelOptions& fake,
                       const ServerConfig& config)
    : fake_(fake) {
  // Of PrepareLibraries (rpc/libraries.h) what may come late: other threads run
  // in a test's process.
  TakeGrpcLog();
  auto server = Server::Start(config, [this] { device_lost_ = true; });
  EXPECT_TRUE(server.ok()) << server.status();
  if (!server.ok()) std::abort();
  server_ = std::move(*server);
  channel_ = NewChannel();
  stub_ = v1::Encoder::NewStub(channel_);
}

TestServer::~TestServer() {
  if (model_ != nullptr) {
    model_->device().OpenGate();
    model_->fake_tokenizer().OpenGate();
  }
  ExpectNothingUnfinished();
  server_.reset();
}

// A call that began and did not end is in flight forever; one that ended twice
// makes it fewer than none.
void TestServer::ExpectNothingUnfinished() {
  Disconnect();
  for (const char* gauge :
       {"encoderd_requests_in_flight", "encoderd_streams",
        "encoderd_unread_answer_bytes", "encoderd_admitted_tokens",
        "encoderd_admitted_bytes", "encoderd_queue_inputs",
        "encoderd_queue_tokens"}) {
    Samples left;
    EXPECT_TRUE(Eventually([&] {
      const Samples all = All(server_->MetricsText(), gauge);
      left = NotZero(all);
      return !all.empty() && left.empty();
    })) << gauge
        << " is not 0 after the test: " << testing::PrintToString(left);
  }
  EXPECT_EQ(server_->in_flight(), 0);
}

absl::Status TestServer::Load() {
  const auto load = [this](const std::string&, const ModelOptions& options)
      -> absl::StatusOr<std::shared_ptr<const Model>> {
    auto model = FakeModel::Load(fake_, options);
    if (!model.ok()) return model.status();
    model_ = *model;
    return model_;
  };
  return server_->Load(load, kNoMemoryLimit);
}

std::shared_ptr<grpc::Channel> TestServer::NewChannel(
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) const {
  grpc::ChannelArguments arguments;
  arguments.SetInt("grpc.use_local_subchannel_pool", 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  // What is not read stays with the server: no window grows for it.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return NewCheckedChannel(absl::StrCat("127.0.0.1:", server_->grpc_port()),
                           credentials, arguments);
}

void TestServer::Disconnect() {
  stub_.reset();
  channel_.reset();
}

std::vector<float> TestServer::Expected(const std::string& text) const {
  Encoding encoding;
  const auto scratch = model_->tokenizer().NewScratch();
  EXPECT_TRUE(
      model_->tokenizer().Encode(text, {}, scratch.get(), &encoding).ok());
  TokenSequence sequence;
  sequence.token_ids = encoding.token_ids;
  sequence.segment_ids = encoding.segment_ids;
  SequenceOutput output;
  output.pooling = model_->info().config.pooling;
  output.normalize = model_->info().config.normalize;
  return model_->device().Expected(sequence, model_->info().limits, output);
}

grpc::Status TestServer::Embed(const v1::EmbedRequest& request,
                               v1::EmbedResponse* response) {
  grpc::ClientContext context;
  SetDeadline(&context);
  return stub_->Embed(&context, request, response);
}

grpc::Status TestServer::Encode(const v1::EncodeRequest& request,
                                v1::EncodeResponse* response) {
  grpc::ClientContext context;
  SetDeadline(&context);
  return stub_->Encode(&context, request, response);
}

grpc::Status TestServer::Tokenize(const v1::TokenizeRequest& request,
                                  v1::TokenizeResponse* response) {
  grpc::ClientContext context;
  SetDeadline(&context);
  return stub_->Tokenize(&context, request, response);
}

grpc::Status TestServer::CallRaw(const std::string& method,
                                 const std::string& bytes,
                                 google::protobuf::Message* response) {
  grpc::GenericStub stub(channel_);
  grpc::ClientContext context;
  SetDeadline(&context);
  grpc::CompletionQueue queue;
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  const std::string path =
      method[0] == '/' ? method : "/encoderd.v1.Encoder/" + method;
  auto call = stub.PrepareUnaryCall(&context, path, request, &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (status.ok() && response != nullptr) {
    grpc::Slice bytes_of_reply;
    EXPECT_TRUE(reply.DumpToSingleSlice(&bytes_of_reply).ok());
    EXPECT_TRUE(response->ParseFromArray(
        bytes_of_reply.begin(), static_cast<int>(bytes_of_reply.size())));
  }
  return status;
}

std::pair<int, std::string> TestServer::Get(const std::string& path) const {
  return GetFrom(server_->http_port(), path);
}

std::pair<int, std::string> TestServer::GetFrom(int port,
                                                const std::string& path) {
  const int fd = NewTcpSocket();
  std::string answer;
  if (ConnectLoopback(fd, port)) {
    const std::string request =
        absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: test\r\n\r\n");
    EXPECT_EQ(write(fd, request.data(), request.size()),
              static_cast<ssize_t>(request.size()));
    char buffer[4096];
    ssize_t size = 0;
    while ((size = read(fd, buffer, sizeof(buffer))) > 0) {
      answer.append(buffer, static_cast<size_t>(size));
    }
  }
  close(fd);
  int code = 0;
  const size_t body = answer.find("\r\n\r\n");
  if (answer.size() < 12 || body == std::string::npos ||
      !absl::SimpleAtoi(answer.substr(9, 3), &code)) {
    return {0, ""};
  }
  return {code, answer.substr(body + 4)};
}

std::string TestServer::MetricsText() const { return Get("/metrics").second; }

double TestServer::Sample(const std::string& text, const std::string& series) {
  // "name{a="b",c="d"}" -> the name and its labels, each `a="b"`.
  const auto parts = [](absl::string_view of) {
    std::vector<absl::string_view> all =
        absl::StrSplit(of, absl::ByAnyChar("{},"), absl::SkipEmpty());
    return std::set<absl::string_view>(all.begin(), all.end());
  };
  const std::set<absl::string_view> asked = parts(series);
  double sum = -1;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t space = line.rfind(' ');
    if (space == absl::string_view::npos || line[0] == '#') continue;
    const std::set<absl::string_view> found = parts(line.substr(0, space));
    double value = 0;
    if (std::includes(found.begin(), found.end(), asked.begin(), asked.end()) &&
        absl::SimpleAtod(line.substr(space + 1), &value)) {
      sum = std::max(sum, 0.0) + value;
    }
  }
  return sum;
}

double Queued(const TestServer& server) {
  return TestServer::Sample(server.MetricsText(), "encoderd_queue_inputs");
}

std::vector<float> Floats(const v1::Embedding& embedding) {
  return {embedding.floats().values().begin(),
          embedding.floats().values().end()};
}

v1::EmbedRequest TextRequest(const std::vector<std::string>& texts) {
  v1::EmbedRequest request;
  for (const std::string& text : texts) request.add_inputs()->set_text(text);
  return request;
}

std::string Letters(int tokens) {
  std::string text;
  for (int i = 0; i < tokens - 2; ++i) {
    text += static_cast<char>('a' + i % 26);
  }
  return text;
}

}  // namespace encoderd
