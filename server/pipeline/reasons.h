// The reasons of the server's errors (ErrorDetail::reason): the names of
// ErrorReason in the contract, with those of the engine. Constants.
#ifndef ENCODERD_SERVER_PIPELINE_REASONS_H_
#define ENCODERD_SERVER_PIPELINE_REASONS_H_

#include "engine/base/reasons.h"

namespace encoderd::reason {

inline constexpr char kBearerTokenMissing[] = "BEARER_TOKEN_MISSING";
inline constexpr char kBearerTokenUnknown[] = "BEARER_TOKEN_UNKNOWN";
inline constexpr char kCancelledInQueue[] = "CANCELLED_IN_QUEUE";
inline constexpr char kDeviceFault[] = "DEVICE_FAULT";
inline constexpr char kDraining[] = "DRAINING";
inline constexpr char kExpiredInQueue[] = "EXPIRED_IN_QUEUE";
inline constexpr char kInternalFault[] = "INTERNAL_FAULT";
inline constexpr char kInvalidOption[] = "INVALID_OPTION";
inline constexpr char kLayerOutOfRange[] = "LAYER_OUT_OF_RANGE";
inline constexpr char kLoading[] = "LOADING";
inline constexpr char kMalformedMessage[] = "MALFORMED_MESSAGE";
inline constexpr char kModelNotFound[] = "MODEL_NOT_FOUND";
inline constexpr char kNoInputs[] = "NO_INPUTS";
inline constexpr char kPromptNotFound[] = "PROMPT_NOT_FOUND";
inline constexpr char kQueueFull[] = "QUEUE_FULL";
inline constexpr char kRowsOutOfRange[] = "ROWS_OUT_OF_RANGE";
inline constexpr char kTooManyInputs[] = "TOO_MANY_INPUTS";

}  // namespace encoderd::reason

#endif  // ENCODERD_SERVER_PIPELINE_REASONS_H_
