#include "client/cpp/patience.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <utility>

#include "client/cpp/grpc_status.h"
#include "client/cpp/steady_time.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace encoderd::client {
namespace {

constexpr absl::Duration kLongestCall = absl::Seconds(1);

}  // namespace

class Patience::HealthCall {
 public:
  HealthCall(const std::shared_ptr<grpc::Channel>& channel, absl::Duration time)
      : stub_(grpc::health::v1::Health::NewStub(channel)),
        context_(NewContext(SteadyNow() + time)) {
    stub_->async()->Check(context_.get(), &request_, &response_,
                          [this](grpc::Status status) {
                            status_ = std::move(status);
                            done_.Notify();
                          });
  }
  ~HealthCall() {
    context_->TryCancel();
    done_.WaitForNotification();
  }
  HealthCall(const HealthCall&) = delete;
  HealthCall& operator=(const HealthCall&) = delete;

  // OK while it is not known.
  absl::Status WhyGone() const {
    if (!done_.HasBeenNotified()) return absl::OkStatus();
    absl::Status status = FromGrpc(status_, /*first_input=*/0);
    return absl::IsUnavailable(status) ? status : absl::OkStatus();
  }

 private:
  const std::unique_ptr<grpc::health::v1::Health::Stub> stub_;
  const std::unique_ptr<grpc::ClientContext> context_;
  const grpc::health::v1::HealthCheckRequest request_;
  grpc::health::v1::HealthCheckResponse response_;
  grpc::Status status_;
  SteadyNotification done_;
};

Patience::Patience(std::shared_ptr<grpc::Channel> channel, absl::Duration time)
    : channel_(std::move(channel)),
      time_(time),
      last_(std::min(kLongestCall, time / 2)) {}

Patience::~Patience() = default;

void Patience::Heard() {
  silence_ = absl::ZeroDuration();
  call_.reset();
}

void Patience::Waited(absl::Duration passed, bool asks_why) {
  silence_ += passed;
  const absl::Duration left = time_ - silence_;
  if (call_ != nullptr || !asks_why || over() || left > last_) return;
  call_ = std::make_unique<HealthCall>(channel_, left);
}

absl::Duration Patience::wait() const {
  const absl::Duration left = time_ - silence_;
  return left > last_ ? left - last_ : left;
}

absl::Status Patience::WhyGone() const {
  return call_ == nullptr ? absl::OkStatus() : call_->WhyGone();
}

}  // namespace encoderd::client
