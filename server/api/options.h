// Options of a request, checked one by one and converted to types of the engine
// and the pipeline.
//
// A choice has the number of the contract, so that an unknown one is rejected
// here, never replaced by its default; kUnset is the default. Thread-safe:
// plain functions. `field`: the request's field, for the error. Errors:
// INVALID_ARGUMENT (INVALID_OPTION with value and limit), NOT_FOUND
// (PROMPT_NOT_FOUND).
#ifndef ENCODERD_SERVER_API_OPTIONS_H_
#define ENCODERD_SERVER_API_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/pooling.h"
#include "engine/base/quantize.h"
#include "engine/checkpoint/model_config.h"
#include "server/pipeline/request.h"

namespace encoderd {

enum class PoolingChoice : int {
  kUnset,  // the model's own
  kCls,
  kMean,
  kMax,
  kMeanSqrtLen,
  kWeightedMean,
  kLastToken
};
enum class TruncateChoice : int { kUnset, kNone, kStart, kEnd };
enum class OnErrorChoice : int { kUnset, kFailRequest, kPerInput };
enum class SpanChoice : int { kUnset, kAll, kWithoutSpecialTokens };
enum class EncodingChoice : int {
  kUnset,
  kFloat32,
  kFloat16,
  kInt8,
  kUint8,
  kBinary,
  kUbinary
};

// For a format of bytes: one value per dimension of the answer.
struct RangeLists {
  std::vector<float> minimum;
  std::vector<float> maximum;
};

inline constexpr int kMaxRequestIdBytes = 128;

// INVALID_OPTION: "FIELD MESSAGE".
absl::Status BadOption(absl::string_view field, absl::string_view message,
                       const absl::AlphaNum& value,
                       const absl::AlphaNum& limit);

absl::Status CheckRequestId(const std::string& request_id);
absl::Status NoRequestIdError();  // where every request needs one

absl::StatusOr<Pooling> ToPooling(absl::string_view field, PoolingChoice choice,
                                  Pooling model_pooling);
absl::StatusOr<TruncateMode> ToTruncate(absl::string_view field,
                                        TruncateChoice choice);
absl::StatusOr<bool> ToErrorsPerInput(absl::string_view field,
                                      OnErrorChoice choice);
absl::StatusOr<bool> ToWithoutSpecialTokens(absl::string_view field,
                                            SpanChoice choice);
absl::StatusOr<VectorFormat> ToFormat(absl::string_view field,
                                      EncodingChoice choice);

// Tokens that neighboring windows share; unset: no windows. max_len and
// special_tokens: of one window.
absl::StatusOr<std::optional<int32_t>> ToWindows(
    absl::string_view field, const std::optional<uint32_t>& asked,
    TruncateMode mode, int32_t max_len, int32_t special_tokens);

// The prompt that is asked for, else the model's default one; empty: none.
const std::string& PromptName(const ModelConfig& config,
                              const std::string& asked);

// The text of PromptName, to put before each input; empty: none.
absl::StatusOr<std::string> FindPrompt(absl::string_view field,
                                       const ModelConfig& config,
                                       const std::string& asked);

// How many of `hidden` values to return; 0: all.
absl::StatusOr<int32_t> ToDimensions(absl::string_view field, uint32_t asked,
                                     int32_t hidden);

// Unset: empty. `choice` is the option that determined `format`.
absl::StatusOr<ByteRanges> ToRanges(absl::string_view field,
                                    const std::optional<RangeLists>& asked,
                                    EncodingChoice choice, VectorFormat format,
                                    int32_t dimensions);

// A name from a caller, ready for a message: at most 64 bytes, control bytes
// escaped.
std::string ForMessage(absl::string_view name);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_API_OPTIONS_H_
