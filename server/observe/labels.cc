#include "server/observe/labels.h"

#include <iterator>

#include "server/pipeline/reasons.h"

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
      new std::vector<std::string>{reason::kInputTooLong,
                                   reason::kTokenIdOutOfRange,
                                   reason::kSegmentIdOutOfRange,
                                   reason::kPositionIdOutOfRange,
                                   reason::kSegmentIdsLength,
                                   reason::kPositionIdsLength,
                                   reason::kNoInputs,
                                   reason::kTooManyInputs,
                                   reason::kEmptyInput,
                                   reason::kInvalidUtf8,
                                   reason::kMalformedMessage,
                                   reason::kInvalidOption,
                                   reason::kLayerOutOfRange,
                                   reason::kModelNotFound,
                                   reason::kPromptNotFound,
                                   reason::kQueueFull,
                                   reason::kRequestTooLarge,
                                   reason::kLoading,
                                   reason::kDraining,
                                   reason::kExpiredInQueue,
                                   reason::kCancelledInQueue,
                                   reason::kDeviceFault,
                                   reason::kRowsOutOfRange,
                                   reason::kBearerTokenMissing,
                                   reason::kBearerTokenUnknown,
                                   reason::kInternalFault};
  return *kReasons;
}

}  // namespace encoderd
