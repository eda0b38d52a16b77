#include "client/cpp/error.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/grpc_status.h"
#include "google/rpc/error_details.pb.h"

namespace encoderd::client {
namespace {

template <typename Message>
std::optional<Message> ReadPayload(const absl::Status& status) {
  const auto payload = status.GetPayload(TypeUrl<Message>());
  Message message;
  if (!payload.has_value() || !message.ParseFromString(std::string(*payload))) {
    return std::nullopt;
  }
  return message;
}

}  // namespace

std::optional<ErrorDetails> GetErrorDetails(const absl::Status& status) {
  const auto info = ReadPayload<google::rpc::ErrorInfo>(status);
  const auto request = ReadPayload<google::rpc::BadRequest>(status);
  const auto retry = ReadPayload<google::rpc::RetryInfo>(status);
  if (!info.has_value() && !request.has_value() && !retry.has_value()) {
    return std::nullopt;
  }
  ErrorDetails details;
  if (info.has_value()) {
    details.reason = info->reason();
    details.domain = info->domain();
    details.metadata.insert(info->metadata().begin(), info->metadata().end());
  }
  if (request.has_value()) {
    for (const auto& violation : request->field_violations()) {
      details.violations.push_back(
          {violation.field(), violation.description()});
    }
  }
  if (retry.has_value()) {
    details.retry_delay = absl::Seconds(retry->retry_delay().seconds()) +
                          absl::Nanoseconds(retry->retry_delay().nanos());
  }
  return details;
}

std::string GetReason(const absl::Status& status) {
  const auto details = GetErrorDetails(status);
  return details.has_value() ? details->reason : "";
}

std::optional<int64_t> GetInputIndex(const absl::Status& status) {
  const auto details = GetErrorDetails(status);
  if (!details.has_value()) return std::nullopt;
  const auto found = details->metadata.find("input_index");
  int64_t index = 0;
  if (found == details->metadata.end() ||
      !absl::SimpleAtoi(found->second, &index)) {
    return std::nullopt;
  }
  return index;
}

std::string Describe(const absl::Status& status) {
  std::string text = absl::StatusCodeToString(status.code());
  const auto details = GetErrorDetails(status);
  if (details.has_value() && !details->reason.empty()) {
    absl::StrAppend(&text, " (", details->reason, ")");
  }
  absl::StrAppend(&text, ": ", status.message());
  return text;
}

absl::Status MakeError(absl::StatusCode code, absl::string_view message,
                       absl::string_view reason,
                       const std::map<std::string, std::string>& metadata) {
  absl::Status status(code, message);
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain("encoderd");
  for (const auto& [key, value] : metadata) {
    (*info.mutable_metadata())[key] = value;
  }
  status.SetPayload(TypeUrl<google::rpc::ErrorInfo>(),
                    absl::Cord(info.SerializeAsString()));
  return status;
}

}  // namespace encoderd::client
