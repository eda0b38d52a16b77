#include "server/observe/labels.h"

#include <iterator>

namespace encoderd {

const char* StageName(Stage stage) {
  constexpr const char* kNames[] = {"tokenize", "queue", "batch", "compute",
                                    "reply"};
  static_assert(std::size(kNames) == kNumStages);
  return kNames[static_cast<int>(stage)];
}

const char* StateName(ServerState state) {
  constexpr const char* kNames[] = {"loading", "serving", "draining", "failed"};
  static_assert(std::size(kNames) == kNumServerStates);
  return kNames[static_cast<int>(state)];
}

const char* TlsFaultName(TlsFault fault) {
  constexpr const char* kNames[] = {"no_certificate",    "certificate_refused",
                                    "refused_by_client", "old_protocol",
                                    "not_tls",           "other"};
  static_assert(std::size(kNames) == kNumTlsFaults);
  return kNames[static_cast<int>(fault)];
}

const char* OutcomeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return "ok";
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kUnauthenticated:
      return "invalid";
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
      return "refused";
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
      return "cancelled";
    default:
      return "failed";
  }
}

const std::vector<std::string>& RejectionReasons() {
  static const auto* const kReasons =
      new std::vector<std::string>{"INPUT_TOO_LONG",
                                   "TOKEN_ID_OUT_OF_RANGE",
                                   "SEGMENT_ID_OUT_OF_RANGE",
                                   "POSITION_ID_OUT_OF_RANGE",
                                   "SEGMENT_IDS_LENGTH",
                                   "POSITION_IDS_LENGTH",
                                   "NO_INPUTS",
                                   "TOO_MANY_INPUTS",
                                   "EMPTY_INPUT",
                                   "INVALID_UTF8",
                                   "MALFORMED_MESSAGE",
                                   "INVALID_OPTION",
                                   "LAYER_OUT_OF_RANGE",
                                   "MODEL_NOT_FOUND",
                                   "PROMPT_NOT_FOUND",
                                   "QUEUE_FULL",
                                   "REQUEST_TOO_LARGE",
                                   "LOADING",
                                   "DRAINING",
                                   "EXPIRED_IN_QUEUE",
                                   "CANCELLED_IN_QUEUE",
                                   "DEVICE_FAULT",
                                   "ROWS_OUT_OF_RANGE",
                                   "BEARER_TOKEN_MISSING",
                                   "BEARER_TOKEN_UNKNOWN",
                                   "INTERNAL_FAULT"};
  return *kReasons;
}

}  // namespace encoderd
