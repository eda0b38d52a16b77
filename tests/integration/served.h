// The server as its own process, with a fake engine, and a caller of it.
// The test is compiled with ENCODERD_FAKE_SERVER, the program's path.
#ifndef ENCODERD_TESTS_INTEGRATION_SERVED_H_
#define ENCODERD_TESTS_INTEGRATION_SERVED_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "encoderd/v1/encoder.grpc.pb.h"
#include "grpcpp/security/credentials.h"
#include "tests/support/checked_channel.h"
#include "tests/support/patience.h"
#include "tests/support/process.h"
#include "tests/support/test_server.h"

namespace encoderd {

inline std::vector<std::string> Arguments(const std::string& fake,
                                          std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {
      ENCODERD_FAKE_SERVER, absl::StrCat("--model=fake=", fake),
      "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

inline std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt("grpc.use_local_subchannel_pool", 1);
  return NewCheckedChannel(address, grpc::InsecureChannelCredentials(),
                           arguments);
}

inline int PortOf(const std::string& address) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  return port;
}

class Served {
 public:
  explicit Served(const std::string& fake, std::vector<std::string> more = {})
      : process(Arguments(fake, more)) {
    const std::string line = process.WaitForLine("event=listening");
    address = LogValue(line, "grpc");
    http_address = LogValue(line, "http");
    EXPECT_NE(address, "") << process.log();
    channel = Connect(address);
  }
  grpc::Status Embed(const std::string& text,
                     absl::Duration timeout = kPatience,
                     const std::string& model = "") const {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    v1::EmbedRequest request = TextRequest({text});
    request.set_model(model);
    v1::EmbedResponse response;
    return v1::Encoder::NewStub(channel)->Embed(&context, request, &response);
  }
  // As TestServer::Sample.
  double Sample(const std::string& series) const {
    return TestServer::Sample(
        TestServer::GetFrom(PortOf(http_address), "/metrics").second, series);
  }

  Process process;
  std::string address;
  std::string http_address;
  std::shared_ptr<grpc::Channel> channel;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_INTEGRATION_SERVED_H_
