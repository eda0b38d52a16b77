// A Server with a FakeModel in the test's own process, on free ports of
// loopback, and what a test needs to talk to it.
#ifndef ENCODERD_TESTS_SUPPORT_TEST_SERVER_H_
#define ENCODERD_TESTS_SUPPORT_TEST_SERVER_H_

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "encoderd/v1/encoder.grpc.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "server/server.h"
#include "tests/support/fake_model.h"

namespace encoderd {

// A refusal as a caller reads it.
struct RpcError {
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string message;
  std::string reason;  // of ErrorInfo; every error of ours has one
  std::string domain;
  std::map<std::string, std::string> metadata;
  std::vector<std::pair<std::string, std::string>> violations;
  std::optional<absl::Duration> retry_delay;
  size_t details_bytes = 0;
};

// Fails the test when an error has no ErrorInfo, an unlisted reason or details
// above 4 KiB: the rule for every error of the whole suite.
RpcError ReadError(const grpc::Status& status);
// The same for an error within an answer.
RpcError ReadError(const google::rpc::Status& status);

ServerConfig TestConfig();  // free ports, everything else as it is shipped

class TestServer {
 public:
  explicit TestServer(const FakeModelOptions& fake = {},
                      const ServerConfig& config = TestConfig());
  // Without loading; call Load.
  struct NotLoaded {};
  TestServer(NotLoaded, const FakeModelOptions& fake,
             const ServerConfig& config = TestConfig());
  // Fails the test when something that began has not ended exactly once:
  // calls, streams, admitted work, unread answers.
  ~TestServer();

  absl::Status Load();

  Server& server() { return *server_; }
  FakeModel& model() { return *model_; }
  bool device_lost() const { return device_lost_; }
  v1::Encoder::Stub& stub() { return *stub_; }
  std::shared_ptr<grpc::Channel> channel() { return channel_; }
  // A channel with its own connection. As channel() does, it fails the test
  // when an error has no ErrorInfo and is not one that gRPC makes by itself.
  std::shared_ptr<grpc::Channel> NewChannel(
      const std::shared_ptr<grpc::ChannelCredentials>& credentials =
          grpc::InsecureChannelCredentials()) const;

  void Disconnect();  // drops channel() and stub()

  // The bits that the fake device gives for a text alone.
  std::vector<float> Expected(const std::string& text) const;

  // Calls with a deadline of kPatience.
  grpc::Status Embed(const v1::EmbedRequest& request,
                     v1::EmbedResponse* response);
  grpc::Status Encode(const v1::EncodeRequest& request,
                      v1::EncodeResponse* response);
  grpc::Status Tokenize(const v1::TokenizeRequest& request,
                        v1::TokenizeResponse* response);
  // Any bytes to a method of the service, or to any "/package.Service/Method".
  grpc::Status CallRaw(const std::string& method, const std::string& bytes,
                       google::protobuf::Message* response = nullptr);

  // The text of /metrics, and the sum of the samples that have the series' name
  // and labels (-1: there is none).
  std::string MetricsText() const;
  static double Sample(const std::string& text, const std::string& series);
  // Status and body of an HTTP GET.
  std::pair<int, std::string> Get(const std::string& path) const;
  static std::pair<int, std::string> GetFrom(int port, const std::string& path);

 private:
  void ExpectNothingUnfinished();

  const FakeModelOptions fake_;
  std::shared_ptr<FakeModel> model_;
  std::atomic<bool> device_lost_{false};
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Encoder::Stub> stub_;
};

// encoderd_queue_inputs
double Queued(const TestServer& server);

v1::EmbedRequest TextRequest(const std::vector<std::string>& texts);
std::vector<float> Floats(const v1::Embedding& embedding);
std::string Letters(
    int tokens);  // a text of this many tokens, specials included

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_TEST_SERVER_H_
