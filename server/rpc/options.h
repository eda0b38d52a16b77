// Options of a request, checked one by one and turned into the engine's and
// the pipeline's words.
//
// Thread-safe: plain functions. `field`: the request's field, for the error.
// Errors: INVALID_ARGUMENT (INVALID_OPTION with value and limit), NOT_FOUND
// (PROMPT_NOT_FOUND). An enum's value that this server does not know is
// refused, never taken for its default.
#ifndef ENCODERD_SERVER_RPC_OPTIONS_H_
#define ENCODERD_SERVER_RPC_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "encoderd/v1/encoder.pb.h"
#include "engine/base/pooling.h"
#include "engine/base/quantize.h"
#include "engine/checkpoint/model_config.h"
#include "server/pipeline/pipeline.h"

namespace encoderd {

inline constexpr int kMaxRequestIdBytes = 128;

// INVALID_OPTION: "FIELD MESSAGE".
absl::Status BadOption(absl::string_view field, absl::string_view message,
                       const absl::AlphaNum& value,
                       const absl::AlphaNum& limit);

absl::Status CheckRequestId(const std::string& request_id);

absl::StatusOr<Pooling> ToPooling(absl::string_view field, int value,
                                  Pooling model_pooling);
absl::StatusOr<TruncateMode> ToTruncate(absl::string_view field, int value);
// FAIL_REQUEST: false; PER_INPUT: true.
absl::StatusOr<bool> ToErrorsPerInput(absl::string_view field, int value);
// ALL: false; WITHOUT_SPECIAL_TOKENS: true.
absl::StatusOr<bool> ToWithoutSpecialTokens(absl::string_view field, int value);
absl::StatusOr<VectorFormat> ToFormat(absl::string_view field, int value);

// Tokens that neighbouring windows share; unset: no windows. max_len and
// special_tokens: of one window.
absl::StatusOr<std::optional<int32_t>> ToWindows(
    const v1::EmbedOptions& options, int32_t max_len, int32_t special_tokens);

// What is put before each text; empty: nothing. Asked for nothing: the model's
// default prompt, if it has one.
absl::StatusOr<std::string> FindPrompt(absl::string_view field,
                                       const ModelConfig& config,
                                       const std::string& asked);

// How many of `hidden` values are asked for; 0: all.
absl::StatusOr<int32_t> ToDimensions(absl::string_view field, uint32_t asked,
                                     int32_t hidden);

// Ranges of a format of bytes, one for each of `dimensions`; none were given:
// empty.
absl::StatusOr<ByteRanges> ToRanges(const v1::EmbedOptions& options,
                                    VectorFormat format, int32_t dimensions);

// A name that a caller sent, fit for a message: at most 64 bytes, control
// bytes escaped.
std::string ForMessage(absl::string_view name);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_OPTIONS_H_
