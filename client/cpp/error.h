// What a server's error says, for programs: reason, numbers, fields, pause.
//
// Every error of this library is an absl::Status with the server's own code
// and message; the google.rpc details of the answer travel as its payloads
// (type URL -> bytes, as Abseil recommends) and GetErrorDetails reads them.
// Errors that this library finds before it calls carry the same reasons.
// Indexes count in the caller's list, however it was cut into calls.
// Thread-safe: plain values.
#ifndef ENCODERD_CLIENT_CPP_ERROR_H_
#define ENCODERD_CLIENT_CPP_ERROR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace encoderd::client {

// Reasons that the library and its command line know.
inline constexpr char kInvalidUtf8[] = "INVALID_UTF8";
inline constexpr char kLoading[] = "LOADING";
inline constexpr char kRequestTooLarge[] = "REQUEST_TOO_LARGE";
inline constexpr char kTooManyInputs[] = "TOO_MANY_INPUTS";

struct FieldViolation {
  std::string field;  // path in the request, e.g. "inputs[3].text"
  std::string description;
};

struct ErrorDetails {
  std::string reason;  // e.g. "INPUT_TOO_LONG": ErrorReason in encoder.proto
  std::string domain;  // "encoderd"
  std::map<std::string, std::string>
      metadata;  // every number of the message, e.g. "token_count"
  std::vector<FieldViolation> violations;
  std::optional<absl::Duration> retry_delay;  // try again after this pause
};

// The details of `status`; nullopt if it has none (OK, or an error that the
// gRPC library made itself, such as a refused connection).
std::optional<ErrorDetails> GetErrorDetails(const absl::Status& status);

// ErrorDetails.reason; empty if `status` has no details.
std::string GetReason(const absl::Status& status);

// The input to blame, counted from 0 in the caller's list, if one is.
std::optional<int64_t> GetInputIndex(const absl::Status& status);

// "INVALID_ARGUMENT (INPUT_TOO_LONG): inputs[3] has ..."
std::string Describe(const absl::Status& status);

// An error with an ErrorInfo of domain "encoderd". `code` must not be kOk.
absl::Status MakeError(absl::StatusCode code, absl::string_view message,
                       absl::string_view reason,
                       const std::map<std::string, std::string>& metadata);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_ERROR_H_
