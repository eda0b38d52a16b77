#include "client/cpp/grpc_status.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace encoderd::client {
namespace {

constexpr absl::string_view kInputs = "inputs[";

// Every "inputs[i]" of `text` with i moved by `first_input`.
std::string MoveIndexes(absl::string_view text, int64_t first_input) {
  std::string moved;
  for (size_t at = text.find(kInputs); at != absl::string_view::npos;
       at = text.find(kInputs)) {
    absl::StrAppend(&moved, text.substr(0, at), kInputs);
    text.remove_prefix(at + kInputs.size());
    const size_t end = text.find(']');
    int64_t index = 0;
    if (end != absl::string_view::npos &&
        absl::SimpleAtoi(text.substr(0, end), &index)) {
      absl::StrAppend(&moved, index + first_input);
      text.remove_prefix(end);
    }
  }
  return absl::StrCat(moved, text);
}

std::string MoveErrorInfo(const std::string& bytes, int64_t first_input) {
  google::rpc::ErrorInfo info;
  if (!info.ParseFromString(bytes)) return bytes;
  const auto found = info.mutable_metadata()->find("input_index");
  int64_t index = 0;
  if (found != info.mutable_metadata()->end() &&
      absl::SimpleAtoi(found->second, &index)) {
    found->second = absl::StrCat(index + first_input);
  }
  return info.SerializeAsString();
}

std::string MoveBadRequest(const std::string& bytes, int64_t first_input) {
  google::rpc::BadRequest request;
  if (!request.ParseFromString(bytes)) return bytes;
  for (auto& violation : *request.mutable_field_violations()) {
    violation.set_field(MoveIndexes(violation.field(), first_input));
    violation.set_description(
        MoveIndexes(violation.description(), first_input));
  }
  return request.SerializeAsString();
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status, int64_t first_input) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()),
                      MoveIndexes(status.error_message(), first_input));
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return result;
  for (const auto& detail : details.details()) {
    std::string bytes = detail.value();
    if (detail.type_url() == TypeUrl<google::rpc::ErrorInfo>()) {
      bytes = MoveErrorInfo(bytes, first_input);
    } else if (detail.type_url() == TypeUrl<google::rpc::BadRequest>()) {
      bytes = MoveBadRequest(bytes, first_input);
    }
    result.SetPayload(detail.type_url(), absl::Cord(bytes));
  }
  return result;
}

}  // namespace encoderd::client
