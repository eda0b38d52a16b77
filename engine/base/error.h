// Errors that a program can read as well as a person.
//
// Every error of the engine that a caller can act on is an absl::Status whose
// message names the thing, the value and the limit, and which also carries an
// ErrorDetail: a stable reason, the same numbers as key/value pairs, and the
// field at fault. The server turns it into google.rpc details; nothing here
// depends on that. Thread-safe: plain values.
#ifndef ENCODERD_ENGINE_BASE_ERROR_H_
#define ENCODERD_ENGINE_BASE_ERROR_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace encoderd {

// One request field at fault, for people and programs.
struct Violation {
  std::string field;        // "inputs[3].text"
  std::string description;  // "inputs[3] has 612 tokens; ... at most 512"
};

// A Status stays under 4 KiB: longer lists are cut and the rest is counted in
// the metadata, key "omitted_violations".
inline constexpr int kMaxViolations = 16;

struct ErrorDetail {
  std::string
      reason;  // UPPER_SNAKE, e.g. "INPUT_TOO_LONG"; part of the contract
  std::map<std::string, std::string>
      metadata;       // every number of the message, lower_snake keys
  std::string field;  // request field to blame, e.g. "text"; may be empty
  // If several fields are at fault: all of them (`field` and the other
  // members describe the first), at most kMaxViolations. Empty when `field`
  // says it all.
  std::vector<Violation> violations = {};
};

// A status with `detail` attached. `code` must not be kOk.
absl::Status MakeError(absl::StatusCode code, absl::string_view message,
                       const ErrorDetail& detail);

// The detail of a status made by MakeError; nullopt for every other status.
std::optional<ErrorDetail> GetErrorDetail(const absl::Status& status);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_BASE_ERROR_H_
