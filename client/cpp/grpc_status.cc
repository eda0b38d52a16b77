#include "client/cpp/grpc_status.h"

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "client/cpp/error.h"
#include "client/cpp/steady_time.h"
#include "google/rpc/error_details.pb.h"

namespace encoderd::client {
namespace {

constexpr absl::string_view kInputs = "inputs[";
// A server's connections have 256 MiB by default; the call of a message that
// takes a large share of it is reset. A reset of a smaller one has another
// cause.
constexpr int64_t kNoMemoryBytes = int64_t{64} << 20;

// Every "inputs[i]" of `text` with i moved by `first_input`.
std::string MoveIndexes(absl::string_view text, int64_t first_input) {
  std::string moved;
  for (size_t at = text.find(kInputs); at != absl::string_view::npos;
       at = text.find(kInputs)) {
    absl::StrAppend(&moved, text.substr(0, at), kInputs);
    text.remove_prefix(at + kInputs.size());
    const size_t end = text.find(']');
    int32_t index = 0;
    if (end != absl::string_view::npos &&
        absl::SimpleAtoi(text.substr(0, end), &index)) {
      absl::StrAppend(&moved, first_input + index);
      text.remove_prefix(end);
    }
  }
  return absl::StrCat(moved, text);
}

std::string MoveErrorInfo(const std::string& bytes, int64_t first_input) {
  google::rpc::ErrorInfo info;
  if (!info.ParseFromString(bytes)) return bytes;
  const auto found = info.mutable_metadata()->find("input_index");
  int32_t index = 0;
  if (found != info.mutable_metadata()->end() &&
      absl::SimpleAtoi(found->second, &index)) {
    found->second = absl::StrCat(first_input + index);
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

absl::Status FromDetails(const google::rpc::Status& error,
                         int64_t first_input) {
  return FromGrpc(grpc::Status(static_cast<grpc::StatusCode>(error.code()),
                               error.message(), error.SerializeAsString()),
                  first_input);
}

absl::Status StreamError(const google::rpc::Status& error,
                         int64_t first_input) {
  const absl::Status status = FromDetails(error, first_input);
  if (!status.ok()) return status;
  return absl::InternalError("the server sent an error with code OK");
}

absl::Status ErrorInPlace(const google::rpc::Status& error, const Cut& cut,
                          int64_t i) {
  // Inputs that were not sent stand between those that were.
  return FromDetails(error, cut.first_input + i - cut.sent_as[i]);
}

absl::Status CheckCount(int64_t results, int64_t sent) {
  if (results == sent) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the server returned ", results,
                                          " results for ", sent, " inputs"));
}

absl::Status CheckCount(int64_t results, const Cut& cut) {
  int64_t sent = 0;
  for (const int at : cut.sent_as) sent += at >= 0 ? 1 : 0;
  return CheckCount(results, sent);
}

bool IsTooLarge(const absl::Status& status, int64_t bytes) {
  if (!absl::IsResourceExhausted(status) ||
      GetErrorDetails(status).has_value()) {
    return false;
  }
  return absl::StrContains(status.message(),
                           absl::StrCat("larger than max (", bytes, " vs")) ||
         (bytes >= kNoMemoryBytes &&
          absl::StrContains(status.message(), "RST_STREAM"));
}

absl::Status NameTooLarge(const absl::Status& status, const Cut& cut,
                          int64_t bytes) {
  const int64_t last =
      cut.first_input + static_cast<int64_t>(cut.sent_as.size()) - 1;
  const bool one = last == cut.first_input;
  std::string inputs = absl::StrCat("inputs[", cut.first_input, "]");
  if (!one) absl::StrAppend(&inputs, " to inputs[", last, "]");
  std::map<std::string, std::string> metadata = {
      {"request_bytes", absl::StrCat(bytes)}};
  if (one) metadata["input_index"] = absl::StrCat(cut.first_input);
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat(inputs, one ? " makes" : " make", " a message of ", bytes,
                   " bytes, more than the server takes: ", status.message()),
      kRequestTooLarge, metadata);
}

absl::Status WithInput(const absl::Status& status, const Cut& cut) {
  if (cut.sent_as.size() != 1 || GetReason(status) != kRequestTooLarge ||
      GetInputIndex(status).has_value()) {
    return status;
  }
  const std::string url = TypeUrl<google::rpc::ErrorInfo>();
  google::rpc::ErrorInfo info;
  if (!info.ParseFromString(std::string(*status.GetPayload(url)))) {
    return status;
  }
  (*info.mutable_metadata())["input_index"] = absl::StrCat(cut.first_input);
  absl::Status named = status;
  named.SetPayload(url, absl::Cord(info.SerializeAsString()));
  return named;
}

std::unique_ptr<grpc::ClientContext> NewContext(absl::Time deadline) {
  auto context = std::make_unique<grpc::ClientContext>();
  if (deadline != absl::InfiniteFuture()) {
    const absl::Time by_wall_clock = absl::Now() + (deadline - SteadyNow());
    context->set_deadline(absl::ToChronoTime(by_wall_clock));
  }
  return context;
}

}  // namespace encoderd::client
