// Matchers for absl::Status and absl::StatusOr.
#ifndef ENCODERD_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define ENCODERD_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <gmock/gmock.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace encoderd {

inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// An error of this code whose message holds this text.
MATCHER_P2(IsError, code, text, "") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code &&
         std::string(StatusOf(arg).message()).find(text) != std::string::npos;
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_STATUS_MATCHERS_H_
