// A client of EmbedStream for tests, and what they ask of a server's metrics.
#ifndef ENCODERD_TESTS_INTEGRATION_STREAM_CLIENT_H_
#define ENCODERD_TESTS_INTEGRATION_STREAM_CLIENT_H_

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/support/patience.h"
#include "tests/support/test_server.h"

namespace encoderd {

inline v1::EmbedRequest Request(const std::string& id,
                                const std::vector<std::string>& texts) {
  v1::EmbedRequest request = TextRequest(texts);
  request.set_request_id(id);
  return request;
}

class Stream {
 public:
  explicit Stream(TestServer* server, absl::Duration timeout = kPatience) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    stream_ = server->stub().EmbedStream(&context_);
  }

  bool Write(const v1::EmbedRequest& request) {
    return stream_->Write(request);
  }
  void HalfClose() { stream_->WritesDone(); }
  bool Read(v1::EmbedResponse* response) { return stream_->Read(response); }
  // All answers that are left, by id.
  std::map<std::string, v1::EmbedResponse> ReadAll() {
    std::map<std::string, v1::EmbedResponse> answers;
    v1::EmbedResponse response;
    while (stream_->Read(&response)) {
      EXPECT_TRUE(answers.emplace(response.request_id(), response).second)
          << "answered twice: " << response.request_id();
    }
    return answers;
  }
  void Cancel() { context_.TryCancel(); }
  grpc::Status Finish() { return stream_->Finish(); }
  // Once finished; empty if the server sent none.
  std::string Trailer(const std::string& name) const {
    const auto& trailers = context_.GetServerTrailingMetadata();
    const auto at = trailers.find(name);
    return at == trailers.end()
               ? ""
               : std::string(at->second.data(), at->second.size());
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::EmbedRequest, v1::EmbedResponse>>
      stream_;
};

inline double Streamed(const TestServer& server, const std::string& code) {
  return TestServer::Sample(server.MetricsText(),
                            absl::StrCat("encoderd_requests_total{code=\"",
                                         code, "\",method=\"EmbedStream\"}"));
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_INTEGRATION_STREAM_CLIENT_H_
