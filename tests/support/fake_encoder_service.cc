#include "tests/support/fake_encoder_service.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/steady_time.h"
#include "tests/support/patience.h"

namespace encoderd::testing {

FakeEncoderService::FakeEncoderService(int port, FakeDoor door)
    : door_(std::move(door)) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", port),
                           door_.Credentials(), &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  target_ = absl::StrCat("127.0.0.1:", port_);
}

FakeEncoderService::~FakeEncoderService() {
  server_->Shutdown(absl::ToChronoTime(absl::Now()));
  server_->Wait();
}

void FakeEncoderService::FailNext(int count, grpc::Status status) {
  absl::MutexLock lock(&mu_);
  failures_left_ = count;
  failure_ = std::move(status);
}

void FakeEncoderService::SetMaxInputs(uint32_t inputs) {
  absl::MutexLock lock(&mu_);
  max_inputs_ = inputs;
}

void FakeEncoderService::SetDelay(absl::Duration delay) {
  absl::MutexLock lock(&mu_);
  delay_ = delay;
}

void FakeEncoderService::FailAfterStreamTexts(int64_t texts) {
  absl::MutexLock lock(&mu_);
  fail_after_ = texts;
}

void FakeEncoderService::BreakStreams(int count, int requests) {
  BreakStreams(count, requests,
               FakeError(grpc::StatusCode::UNAVAILABLE, "the server goes away",
                         "DRAINING", {}));
}

void FakeEncoderService::BreakStreams(int count, int requests,
                                      grpc::Status status) {
  absl::MutexLock lock(&mu_);
  broken_ = std::move(status);
  breaks_left_ = count;
  break_after_ = requests;
}

void FakeEncoderService::HoldUntilTogether(int calls) {
  absl::MutexLock lock(&mu_);
  hold_until_ = calls;
}

void FakeEncoderService::Delay(const v1::EmbedRequest& request,
                               const grpc::ServerContext& context) const {
  const std::string first =
      request.inputs_size() > 0 ? request.inputs(0).text() : "";
  if (!absl::StartsWith(first, "~")) return;
  absl::Time until = absl::InfiniteFuture();
  if (!absl::StartsWith(first, "~~")) until = client::SteadyNow() + delay();
  while (client::SteadyNow() < until && !context.IsCancelled()) {
    absl::SleepFor(absl::Milliseconds(2));
  }
}

int FakeEncoderService::streams() const {
  absl::MutexLock lock(&mu_);
  return streams_;
}

void FakeEncoderService::AwaitEndOfStreams() const {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(
      +[](const int* open) { return *open == 0; }, &open_streams_));
}

int64_t FakeEncoderService::stream_texts() const {
  absl::MutexLock lock(&mu_);
  return stream_texts_;
}

void FakeEncoderService::SetServing(bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(serving);
}

int FakeEncoderService::embed_calls() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int>(call_sizes_.size());
}

int FakeEncoderService::max_calls_together() const {
  absl::MutexLock lock(&mu_);
  return max_together_;
}

std::vector<int> FakeEncoderService::call_sizes() const {
  absl::MutexLock lock(&mu_);
  return call_sizes_;
}

std::vector<int> FakeEncoderService::token_call_sizes() const {
  absl::MutexLock lock(&mu_);
  return token_call_sizes_;
}

v1::EncodeRequest FakeEncoderService::last_encode() const {
  absl::MutexLock lock(&mu_);
  return last_encode_;
}

v1::EmbedOptions FakeEncoderService::last_options() const {
  absl::MutexLock lock(&mu_);
  return last_options_;
}

grpc::Status FakeEncoderService::Begin(const v1::EmbedRequest& request) {
  absl::MutexLock lock(&mu_);
  max_together_ = std::max(max_together_, ++running_);
  more_together_.NotifyAll();
  const auto together = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return max_together_ >= hold_until_;
  };
  more_together_.Await(&mu_, together, kPatience);
  call_sizes_.push_back(request.inputs_size());
  last_options_ = request.options();
  if (failures_left_ == 0) return CheckCount(request.inputs_size());
  --failures_left_;
  return failure_;
}

grpc::Status FakeEncoderService::CheckCount(int inputs) const {
  const int limit = static_cast<int>(max_inputs_);
  if (limit == 0 || inputs <= limit) return grpc::Status::OK;
  return FakeError(
      grpc::StatusCode::INVALID_ARGUMENT,
      absl::StrCat("inputs has ", inputs,
                   " entries; one request may carry at most ", limit),
      "TOO_MANY_INPUTS",
      {{"count", absl::StrCat(inputs)}, {"limit", absl::StrCat(limit)}},
      "inputs");
}

grpc::Status FakeEncoderService::BeginTokens(int inputs) {
  absl::MutexLock lock(&mu_);
  token_call_sizes_.push_back(inputs);
  return CheckCount(inputs);
}

void FakeEncoderService::End() {
  absl::MutexLock lock(&mu_);
  --running_;
}

}  // namespace encoderd::testing
