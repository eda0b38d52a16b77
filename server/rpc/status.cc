#include "server/rpc/status.h"

#include <cstdint>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/error.h"
#include "engine/base/utf8.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/api/publish.h"

namespace encoderd {
namespace {

constexpr size_t kMaxText = 512;  // bytes of one message or metadata value

// Marks what it cuts.
std::string Shorten(absl::string_view text) {
  const absl::string_view kept = utf8::CutAtCharacter(text, kMaxText);
  return absl::StrCat(kept, kept.size() < text.size() ? "..." : "");
}

// The fields at fault, and how many more there are than listed.
std::vector<Violation> ListViolations(const absl::Status& status,
                                      int64_t* omitted) {
  *omitted = 0;
  const auto detail = GetErrorDetail(status);
  if (!detail.has_value()) return {};
  const auto more = detail->metadata.find("omitted_violations");
  if (more != detail->metadata.end() &&
      !absl::SimpleAtoi(more->second, omitted)) {
    *omitted = 0;
  }
  if (!detail->violations.empty()) return detail->violations;
  if (detail->field.empty()) return {};
  return {{detail->field, std::string(status.message())}};
}

google::rpc::Status Details(const absl::Status& status, size_t max_violations) {
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(Shorten(status.message()));

  int64_t omitted = 0;
  std::vector<Violation> violations = ListViolations(status, &omitted);
  if (violations.size() > max_violations) {
    omitted += static_cast<int64_t>(violations.size() - max_violations);
    violations.resize(max_violations);
  }

  google::rpc::ErrorInfo info;
  info.set_reason(ReasonOf(status));
  info.set_domain(kErrorDomain);
  if (const auto detail = GetErrorDetail(status); detail.has_value()) {
    for (const auto& [key, value] : detail->metadata) {
      (*info.mutable_metadata())[key] = Shorten(value);
    }
  }
  if (omitted > 0) {
    (*info.mutable_metadata())["omitted_violations"] = absl::StrCat(omitted);
  }
  details.add_details()->PackFrom(info);

  if (!violations.empty()) {
    google::rpc::BadRequest bad;
    for (const Violation& violation : violations) {
      auto* entry = bad.add_field_violations();
      entry->set_field(violation.field);
      entry->set_description(Shorten(violation.description));
    }
    if (omitted > 0) {
      bad.add_field_violations()->set_description(
          absl::StrCat("and ", omitted, " more"));
    }
    details.add_details()->PackFrom(bad);
  }

  if (const auto delay = RetryDelay(status); delay.has_value()) {
    google::rpc::RetryInfo retry;
    const int64_t ms = absl::ToInt64Milliseconds(*delay);
    retry.mutable_retry_delay()->set_seconds(ms / 1000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(ms % 1000) *
                                           1000000);
    details.add_details()->PackFrom(retry);
  }
  return details;
}

}  // namespace

google::rpc::Status ToRpcStatus(const absl::Status& status, int max_bytes) {
  google::rpc::Status details;
  for (size_t violations = kMaxViolations;; violations /= 2) {
    details = Details(status, violations);
    if (static_cast<int>(details.ByteSizeLong()) <= max_bytes ||
        violations == 0) {
      return details;
    }
  }
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  // The message is sent twice: next to the details, and within them.
  const int message = static_cast<int>(Shorten(status.message()).size());
  const google::rpc::Status details =
      ToRpcStatus(status, kMaxStatusBytes - message);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      details.message(), details.SerializeAsString());
}

}  // namespace encoderd
