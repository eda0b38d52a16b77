// The reasons of the engine's errors (ErrorDetail::reason): the names of
// ErrorReason in the contract. Constants.
#ifndef ENCODERD_ENGINE_BASE_REASONS_H_
#define ENCODERD_ENGINE_BASE_REASONS_H_

namespace encoderd::reason {

inline constexpr char kEmptyInput[] = "EMPTY_INPUT";
inline constexpr char kInputTooLong[] = "INPUT_TOO_LONG";
inline constexpr char kInvalidUtf8[] = "INVALID_UTF8";
inline constexpr char kPositionIdOutOfRange[] = "POSITION_ID_OUT_OF_RANGE";
inline constexpr char kPositionIdsLength[] = "POSITION_IDS_LENGTH";
inline constexpr char kRequestTooLarge[] = "REQUEST_TOO_LARGE";
inline constexpr char kSegmentIdOutOfRange[] = "SEGMENT_ID_OUT_OF_RANGE";
inline constexpr char kSegmentIdsLength[] = "SEGMENT_IDS_LENGTH";
inline constexpr char kTokenIdOutOfRange[] = "TOKEN_ID_OUT_OF_RANGE";

}  // namespace encoderd::reason

#endif  // ENCODERD_ENGINE_BASE_REASONS_H_
