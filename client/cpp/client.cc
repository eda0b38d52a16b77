#include "client/cpp/client.h"

#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cpp/calls.h"
#include "client/cpp/channel.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/loopback.h"
#include "client/cpp/retry.h"
#include "client/cpp/steady_time.h"
#include "client/cpp/target.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "service_config.h"

namespace encoderd::client {
namespace {

absl::Status CheckRange(absl::string_view name, int64_t value, int64_t low) {
  if (value >= low) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, "; it must be at least ", low));
}

int ToMilliseconds(absl::Duration time) {
  constexpr int kNever = std::numeric_limits<int>::max();  // as gRPC has it
  return static_cast<int>(
      std::min<int64_t>(absl::ToInt64Milliseconds(time), kNever));
}

absl::Status Check(const ClientOptions& options) {
  absl::Status status = CheckRange("texts_per_call", options.texts_per_call, 1);
  status.Update(
      CheckRange("texts_per_encode_call", options.texts_per_encode_call, 1));
  status.Update(CheckRange("bytes_per_call", options.bytes_per_call, 1));
  status.Update(CheckRange("calls_in_flight", options.calls_in_flight, 1));
  status.Update(CheckRange("max_answer_bytes", options.max_answer_bytes, 1));
  status.Update(CheckRange("keepalive_time in milliseconds",
                           ToMilliseconds(options.keepalive_time), 1));
  if (status.ok() && options.timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("timeout is ", absl::FormatDuration(options.timeout),
                     "; it must be more than 0"));
  }
  return status;
}

// With round_robin, any of the addresses of localhost may have the last word on
// why there is no connection, also one at which nothing listens. pick_first
// dials them in order, ::1 first: 127.0.0.1, where servers listen, has it (with
// gRPC 1.51; with 1.85 only in the first of several attempts).
std::string ServiceConfigFor(absl::string_view target) {
  if (!IsLocalhost(target)) return kServiceConfigJson;
  return absl::StrReplaceAll(kServiceConfigJson,
                             {{"round_robin", "pick_first"}});
}

// Of a call, at most; gRPC counts it in the retry buffer with the request.
constexpr int kMetadataBytes = 16 << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(
    const std::string& target, ClientOptions options) {
  const absl::StatusOr<std::string> address = CheckTarget(target);
  if (!address.ok()) return address.status();
  const absl::Status checked = Check(options);
  if (!checked.ok()) return checked;
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(options.service_config_json.empty()
                                     ? ServiceConfigFor(*address)
                                     : options.service_config_json);
  arguments.SetMaxReceiveMessageSize(options.max_answer_bytes);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE,
                   RetryBufferBytes(options) + kMetadataBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   settings::kInitialReconnectBackoffMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   settings::kMinReconnectBackoffMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   settings::kMaxReconnectBackoffMs);
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS,
                   settings::kMinDnsIntervalMs);
  // One that is gone without a word is noticed.
  const int keepalive_ms = ToMilliseconds(options.keepalive_time);
  const int ping_timeout_ms = std::max(1, keepalive_ms / 2);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, ping_timeout_ms);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // any number
  // Of pings that newer versions of gRPC send to measure the bandwidth.
  arguments.SetInt("grpc.http2.ping_timeout_ms", ping_timeout_ms);
  arguments.SetUserAgentPrefix("encoderd-cpp");
  auto channel = MakeChannel(*address, options, arguments);
  if (!channel.ok()) return channel.status();
  return std::unique_ptr<Client>(
      new Client(*std::move(channel), std::move(options)));
}

Client::Client(std::shared_ptr<grpc::Channel> channel, ClientOptions options)
    : options_(std::move(options)),
      channel_(std::move(channel)),
      stub_(v1::Encoder::NewStub(channel_)) {}

absl::Status Client::Call(
    absl::FunctionRef<grpc::Status(grpc::ClientContext*)> call) const {
  const absl::Time deadline = SteadyNow() + options_.timeout;
  absl::Status passing;
  while (true) {
    const absl::Status status = AfterRetries(
        FromGrpc(call(NewContext(deadline).get()), /*first_input=*/0), passing);
    const auto pause = RetryPause(status, deadline);
    if (!pause.has_value()) return status;
    passing = status;
    if (!SleepUnlessStopped(*pause, options_.stop)) {
      return absl::CancelledError("stopped");
    }
  }
}

absl::StatusOr<std::vector<v1::Model>> Client::Models() const {
  v1::ListModelsResponse response;
  const absl::Status status = Call([&](grpc::ClientContext* context) {
    return stub_->ListModels(context, {}, &response);
  });
  if (!status.ok()) return status;
  return std::vector<v1::Model>(response.models().begin(),
                                response.models().end());
}

absl::StatusOr<v1::Model> Client::GetModel(const std::string& name) const {
  v1::GetModelRequest request;
  request.set_model(name);
  v1::Model model;
  const absl::Status status = Call([&](grpc::ClientContext* context) {
    return stub_->GetModel(context, request, &model);
  });
  if (!status.ok()) return status;
  return model;
}

absl::StatusOr<v1::InspectPositionsResponse> Client::InspectPositions(
    const InspectOptions& options) const {
  v1::InspectPositionsRequest request;
  request.set_model(options.model);
  request.set_first_row(options.first_row);
  request.set_row_count(options.row_count);
  request.set_cosine(options.cosine);
  request.set_values(options.values);
  v1::InspectPositionsResponse response;
  const absl::Status status = Call([&](grpc::ClientContext* context) {
    return stub_->InspectPositions(context, request, &response);
  });
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<ServingStatus> Client::Health(const std::string& service) const {
  const auto stub = grpc::health::v1::Health::NewStub(channel_);
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  grpc::health::v1::HealthCheckResponse response;
  const absl::Status status = Call([&](grpc::ClientContext* context) {
    return stub->Check(context, request, &response);
  });
  if (!status.ok()) return status;
  switch (response.status()) {
    case grpc::health::v1::HealthCheckResponse::SERVING:
      return ServingStatus::kServing;
    case grpc::health::v1::HealthCheckResponse::NOT_SERVING:
      return ServingStatus::kNotServing;
    default:
      return ServingStatus::kUnknown;
  }
}

}  // namespace encoderd::client
