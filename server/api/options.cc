#include "server/api/options.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "absl/strings/escaping.h"
#include "engine/base/error.h"
#include "engine/base/utf8.h"
#include "server/pipeline/reasons.h"

namespace encoderd {
namespace {

constexpr size_t kMaxNameInMessage = 64;  // bytes

// The meaning of a choice, by its number.
template <typename Choice, typename Meaning, size_t kKnown>
absl::StatusOr<Meaning> Choose(absl::string_view field, Choice choice,
                               const Meaning (&known)[kKnown]) {
  const int value = static_cast<int>(choice);
  constexpr int kLast = static_cast<int>(kKnown) - 1;
  if (value >= 0 && value <= kLast) return known[value];
  return BadOption(
      field, absl::StrCat("is ", value, "; this server knows 0 to ", kLast),
      value, kLast);
}

// A BadOption about an entry of a list.
absl::Status BadEntry(absl::string_view field, size_t index,
                      absl::string_view message, float value,
                      const absl::AlphaNum& limit) {
  const std::string entry = absl::StrCat(field, "[", index, "]");
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat(entry, " ", message),
                   {reason::kInvalidOption,
                    {{"index", absl::StrCat(index)},
                     {"value", absl::StrCat(value)},
                     {"limit", std::string(limit.Piece())}},
                    entry});
}

// Checks minimum and maximum: as long as the answer, every value finite.
absl::Status CheckBounds(absl::string_view field,
                         const std::vector<float>& bounds, int32_t dimensions) {
  if (bounds.size() != static_cast<size_t>(dimensions)) {
    return BadOption(
        field,
        absl::StrCat("has ", bounds.size(), " values; the answer has ",
                     dimensions, " dimensions"),
        bounds.size(), dimensions);
  }
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (std::isfinite(bounds[i])) continue;
    return BadEntry(field, i,
                    absl::StrCat("is ", bounds[i], "; must be finite"),
                    bounds[i], "finite");
  }
  return absl::OkStatus();
}

// The name in the contract; for an unknown choice, the number.
std::string NameOf(EncodingChoice choice) {
  constexpr const char* kNames[] = {"ENCODING_UNSPECIFIED", "ENCODING_FLOAT32",
                                    "ENCODING_FLOAT16",     "ENCODING_INT8",
                                    "ENCODING_UINT8",       "ENCODING_BINARY",
                                    "ENCODING_UBINARY"};
  const auto at = static_cast<size_t>(choice);
  return at < std::size(kNames) ? kNames[at]
                                : absl::StrCat(static_cast<int>(choice));
}

}  // namespace

absl::Status BadOption(absl::string_view field, absl::string_view message,
                       const absl::AlphaNum& value,
                       const absl::AlphaNum& limit) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat(field, " ", message),
                   {reason::kInvalidOption,
                    {{"value", std::string(value.Piece())},
                     {"limit", std::string(limit.Piece())}},
                    std::string(field)});
}

absl::Status CheckRequestId(const std::string& request_id) {
  const int64_t size = static_cast<int64_t>(request_id.size());
  if (size <= kMaxRequestIdBytes) return absl::OkStatus();
  return BadOption("request_id",
                   absl::StrCat("has ", size, " bytes; at most ",
                                kMaxRequestIdBytes, " are allowed"),
                   size, kMaxRequestIdBytes);
}

absl::Status NoRequestIdError() {
  return BadOption("request_id",
                   "is empty; every request of a stream needs one", "",
                   "1 to 128 bytes");
}

absl::StatusOr<Pooling> ToPooling(absl::string_view field, PoolingChoice choice,
                                  Pooling model_pooling) {
  return Choose(
      field, choice,
      {model_pooling, Pooling::kCls, Pooling::kMean, Pooling::kMax,
       Pooling::kMeanSqrtLen, Pooling::kWeightedMean, Pooling::kLastToken});
}

absl::StatusOr<TruncateMode> ToTruncate(absl::string_view field,
                                        TruncateChoice choice) {
  return Choose(field, choice,
                {TruncateMode::kNone, TruncateMode::kNone, TruncateMode::kStart,
                 TruncateMode::kEnd});
}

absl::StatusOr<bool> ToErrorsPerInput(absl::string_view field,
                                      OnErrorChoice choice) {
  return Choose(field, choice, {false, false, true});
}

absl::StatusOr<bool> ToWithoutSpecialTokens(absl::string_view field,
                                            SpanChoice choice) {
  return Choose(field, choice, {false, false, true});
}

absl::StatusOr<VectorFormat> ToFormat(absl::string_view field,
                                      EncodingChoice choice) {
  return Choose(
      field, choice,
      {VectorFormat::kFloat32, VectorFormat::kFloat32, VectorFormat::kFloat16,
       VectorFormat::kInt8, VectorFormat::kUint8, VectorFormat::kBinary,
       VectorFormat::kUbinary});
}

const std::string& PromptName(const ModelConfig& config,
                              const std::string& asked) {
  return asked.empty() ? config.default_prompt_name : asked;
}

absl::StatusOr<std::string> FindPrompt(absl::string_view field,
                                       const ModelConfig& config,
                                       const std::string& asked) {
  const std::string& name = PromptName(config, asked);
  if (name.empty()) return std::string();
  const auto at = config.prompts.find(name);
  if (at != config.prompts.end()) return at->second;
  std::string available;
  for (const auto& entry : config.prompts) {
    absl::StrAppend(&available, available.empty() ? "" : ", ", entry.first);
  }
  return MakeError(
      absl::StatusCode::kNotFound,
      absl::StrCat("no prompt '", ForMessage(name), "'; ",
                   available.empty() ? "this model has none"
                                     : absl::StrCat("available: ", available)),
      {reason::kPromptNotFound,
       {{"prompt", ForMessage(name)}, {"available", available}},
       std::string(field)});
}

absl::StatusOr<std::optional<int32_t>> ToWindows(
    absl::string_view field, const std::optional<uint32_t>& asked,
    TruncateMode mode, int32_t max_len, int32_t special_tokens) {
  if (!asked.has_value()) return std::nullopt;
  if (mode != TruncateMode::kNone) {
    const absl::string_view truncate =
        mode == TruncateMode::kStart ? "TRUNCATE_START" : "TRUNCATE_END";
    return BadOption(field,
                     absl::StrCat("are set together with ", truncate,
                                  "; a long text is either truncated or "
                                  "computed in windows: set one of them"),
                     truncate, "TRUNCATE_NONE");
  }
  // If half of each window is shared, every token is computed at most twice. An
  // overlap of nearly the whole window would let a short text cost hours of
  // compute.
  const int32_t most = std::max(max_len - special_tokens, 0) / 2;
  const uint32_t overlap = *asked;
  if (overlap > static_cast<uint32_t>(most)) {
    return BadOption(
        absl::StrCat(field, ".overlap"),
        absl::StrCat("is ", overlap, "; windows share at most ", most,
                     " tokens, half of max_len less the special tokens"),
        overlap, most);
  }
  return static_cast<int32_t>(overlap);
}

absl::StatusOr<int32_t> ToDimensions(absl::string_view field, uint32_t asked,
                                     int32_t hidden) {
  if (asked == 0) return hidden;
  if (asked <= static_cast<uint32_t>(hidden)) {
    return static_cast<int32_t>(asked);
  }
  return BadOption(field,
                   absl::StrCat("is ", asked, "; this model has ", hidden),
                   asked, hidden);
}

absl::StatusOr<ByteRanges> ToRanges(absl::string_view field,
                                    const std::optional<RangeLists>& asked,
                                    EncodingChoice choice, VectorFormat format,
                                    int32_t dimensions) {
  if (!asked.has_value()) return ByteRanges();
  if (format != VectorFormat::kInt8 && format != VectorFormat::kUint8) {
    const std::string encoding = NameOf(choice);
    return BadOption(field,
                     absl::StrCat(choice == EncodingChoice::kUnset
                                      ? "are set without an encoding"
                                      : absl::StrCat("are set with ", encoding),
                                  "; only INT8 and UINT8 have ranges"),
                     encoding, "ENCODING_INT8, ENCODING_UINT8");
  }
  const auto& [minimum, maximum] = *asked;
  const std::string minimum_field = absl::StrCat(field, ".minimum");
  const std::string maximum_field = absl::StrCat(field, ".maximum");
  absl::Status status = CheckBounds(minimum_field, minimum, dimensions);
  if (status.ok()) status = CheckBounds(maximum_field, maximum, dimensions);
  if (!status.ok()) return status;
  for (int i = 0; i < dimensions; ++i) {
    if (maximum[i] <= minimum[i]) {
      return BadEntry(
          maximum_field, i,
          absl::StrCat("is ", maximum[i], "; it must be above the minimum, ",
                       minimum[i]),
          maximum[i], minimum[i]);
    }
    if (!std::isfinite(maximum[i] - minimum[i])) {
      return BadEntry(
          maximum_field, i,
          absl::StrCat("is ", maximum[i], "; from the minimum, ", minimum[i],
                       ", the distance exceeds the range of a float"),
          maximum[i], minimum[i]);
    }
  }
  return ByteRanges::Make(minimum, maximum);
}

std::string ForMessage(absl::string_view name) {
  const absl::string_view kept = utf8::CutAtCharacter(name, kMaxNameInMessage);
  return absl::StrCat(absl::Utf8SafeCEscape(kept),
                      kept.size() < name.size() ? "..." : "");
}

}  // namespace encoderd
