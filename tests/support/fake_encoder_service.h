// A server of encoderd.v1 without an engine, for tests of the clients.
//
// Vectors are a function of the text's bytes alone. A text has as many tokens
// as words, plus two; more than kMaxLen are refused, cut, or said to be two
// windows, as the contract says. Messages past 4 MiB are refused by gRPC.
// Listens on its own port on 127.0.0.1 until destroyed. Thread-safe.
#ifndef ENCODERD_TESTS_SUPPORT_FAKE_ENCODER_SERVICE_H_
#define ENCODERD_TESTS_SUPPORT_FAKE_ENCODER_SERVICE_H_

#include <grpcpp/server.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/steady_time.h"
#include "encoderd/v1/encoder.grpc.pb.h"
#include "tests/support/fake_door.h"

namespace encoderd::testing {

// The vector that the fake answers for `text`, [kHiddenSize].
std::vector<float> FakeVector(const std::string& text);

// A gRPC error with ErrorInfo (domain "encoderd") and, if `field` is not
// empty, BadRequest.
grpc::Status FakeError(grpc::StatusCode code, const std::string& message,
                       const std::string& reason,
                       const std::map<std::string, std::string>& metadata,
                       const std::string& field = "");

class FakeEncoderService : public v1::Encoder::Service {
 public:
  static constexpr int kHiddenSize = 6;
  static constexpr int kMaxLen = 8;       // tokens
  static constexpr int kPaddingRows = 2;  // of the position table
  static constexpr int kLayers = 2;

  // port 0: a free one. By default nothing is encrypted or asked for.
  explicit FakeEncoderService(int port = 0, FakeDoor door = {});
  ~FakeEncoderService() override;

  std::string target() const { return target_; }
  int port() const { return port_; }

  // The next `count` calls of Embed answer `status`.
  void FailNext(int count, grpc::Status status);
  // Each of the next `count` streams ends with UNAVAILABLE (DRAINING), or with
  // `status`, once it has answered `requests` requests.
  void BreakStreams(int count, int requests);
  void BreakStreams(int count, int requests, grpc::Status status);
  // Requests of streams fail with DEVICE_FAULT once this many texts came over
  // streams in all; negative: never.
  void FailAfterStreamTexts(int64_t texts);
  // Every Embed call whose first text starts with '~' takes this long, with
  // "~~" forever; but none longer than its caller waits.
  void SetDelay(absl::Duration delay);
  // Embed calls wait until this many were in flight at the same time, once.
  void HoldUntilTogether(int calls);
  // What GetModel tells; it changes the fingerprint, vectors stay as they are.
  void SetPooling(v1::Pooling pooling);
  // What GetModel tells as max_inputs_per_request; calls of Embed, Encode and
  // Tokenize and requests of streams with more are refused. 0: any number.
  void SetMaxInputs(uint32_t inputs);
  // What GetModel answers instead of a model.
  void RefuseModels(grpc::Status status);
  // What InspectPositions concludes.
  void SetVerdict(v1::PositionVerdict verdict);
  // What the health service says of the whole server.
  void SetServing(bool serving);

  int embed_calls() const;         // attempts, refused ones included
  int max_calls_together() const;  // most Embed calls seen at the same time
  int streams() const;             // that were opened
  int64_t stream_texts() const;    // that came over streams
  // Returns once no stream is open. A client may be done with a stream before
  // the service is.
  void AwaitEndOfStreams() const;
  std::vector<int> call_sizes() const;        // inputs of each Embed call
  std::vector<int> token_call_sizes() const;  // of each Encode or Tokenize
  v1::EmbedOptions last_options() const;
  v1::EncodeRequest last_encode() const;

  grpc::Status Embed(grpc::ServerContext* context,
                     const v1::EmbedRequest* request,
                     v1::EmbedResponse* response) override;
  // Answers in the order of the requests; bad texts always cost only
  // themselves. FailNext and SetDelay are for its requests as for calls.
  grpc::Status EmbedStream(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::EmbedResponse, v1::EmbedRequest>* stream)
      override;
  grpc::Status Encode(grpc::ServerContext* context,
                      const v1::EncodeRequest* request,
                      v1::EncodeResponse* response) override;
  grpc::Status Tokenize(grpc::ServerContext* context,
                        const v1::TokenizeRequest* request,
                        v1::TokenizeResponse* response) override;
  grpc::Status ListModels(grpc::ServerContext* context,
                          const v1::ListModelsRequest* request,
                          v1::ListModelsResponse* response) override;
  grpc::Status GetModel(grpc::ServerContext* context,
                        const v1::GetModelRequest* request,
                        v1::Model* model) override;
  // A table [kMaxLen,kHiddenSize] whose first half is trained; value r + c / 8.
  // Rows past its end are refused.
  grpc::Status InspectPositions(
      grpc::ServerContext* context, const v1::InspectPositionsRequest* request,
      v1::InspectPositionsResponse* response) override;

 private:
  absl::Duration delay() const {
    absl::MutexLock lock(&mu_);
    return delay_;
  }
  std::string fingerprint() const {
    absl::MutexLock lock(&mu_);
    return absl::StrCat("pooling ", pooling_);
  }
  // Waits, if this request is to be slow.
  void Delay(const v1::EmbedRequest& request,
             const grpc::ServerContext& context) const;
  // Counts a call in; the error that it must answer, if any.
  grpc::Status Begin(const v1::EmbedRequest& request);
  void End();
  // The same of a call of Encode or Tokenize, which has no end to note.
  grpc::Status BeginTokens(int inputs);
  // TOO_MANY_INPUTS if a call may not have this many.
  grpc::Status CheckCount(int inputs) const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const FakeDoor door_;
  std::unique_ptr<grpc::Server> server_;  // constant after construction
  std::string target_;                    // constant after construction
  int port_ = 0;                          // constant after construction
  mutable absl::Mutex mu_;
  client::SteadyCondition more_together_;  // max_together_ may have grown
  v1::Pooling pooling_ ABSL_GUARDED_BY(mu_) = v1::POOLING_MEAN;
  uint32_t max_inputs_ ABSL_GUARDED_BY(mu_) = 0;
  grpc::Status models_refused_ ABSL_GUARDED_BY(mu_);
  v1::PositionVerdict verdict_ ABSL_GUARDED_BY(mu_) =
      v1::POSITION_VERDICT_PARTLY_TRAINED;
  int failures_left_ ABSL_GUARDED_BY(mu_) = 0;
  grpc::Status failure_ ABSL_GUARDED_BY(mu_);
  absl::Duration delay_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();
  int breaks_left_ ABSL_GUARDED_BY(mu_) = 0;
  grpc::Status broken_ ABSL_GUARDED_BY(mu_);
  int break_after_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t fail_after_ ABSL_GUARDED_BY(mu_) = -1;
  int streams_ ABSL_GUARDED_BY(mu_) = 0;
  int open_streams_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t stream_texts_ ABSL_GUARDED_BY(mu_) = 0;
  int running_ ABSL_GUARDED_BY(mu_) = 0;
  int max_together_ ABSL_GUARDED_BY(mu_) = 0;
  int hold_until_ ABSL_GUARDED_BY(mu_) = 0;  // max_together_ is this
  std::vector<int> call_sizes_ ABSL_GUARDED_BY(mu_);
  std::vector<int> token_call_sizes_ ABSL_GUARDED_BY(mu_);
  v1::EmbedOptions last_options_ ABSL_GUARDED_BY(mu_);
  v1::EncodeRequest last_encode_ ABSL_GUARDED_BY(mu_);
};

}  // namespace encoderd::testing

#endif  // ENCODERD_TESTS_SUPPORT_FAKE_ENCODER_SERVICE_H_
