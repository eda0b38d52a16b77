#include "server/rpc/options.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/escaping.h"
#include "engine/base/error.h"

namespace encoderd {
namespace {

constexpr size_t kMaxNameInMessage = 64;  // bytes

absl::Status UnknownEnum(absl::string_view field, int value, int known) {
  return BadOption(
      field, absl::StrCat("is ", value, "; this server knows 0 to ", known),
      value, known);
}

// Of minimum and maximum: as long as the answer, every value a number.
absl::Status CheckBounds(const char* field,
                         const google::protobuf::RepeatedField<float>& bounds,
                         int32_t dimensions) {
  if (bounds.size() != dimensions) {
    return BadOption(
        field,
        absl::StrCat("has ", bounds.size(), " values; the answer has ",
                     dimensions, " dimensions"),
        bounds.size(), dimensions);
  }
  for (int i = 0; i < bounds.size(); ++i) {
    if (std::isfinite(bounds[i])) continue;
    return BadOption(absl::StrCat(field, "[", i, "]"),
                     absl::StrCat("is ", bounds[i], "; want a finite number"),
                     bounds[i], "finite");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BadOption(absl::string_view field, absl::string_view message,
                       const absl::AlphaNum& value,
                       const absl::AlphaNum& limit) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat(field, " ", message),
                   {"INVALID_OPTION",
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

absl::StatusOr<Pooling> ToPooling(absl::string_view field, int value,
                                  Pooling model_pooling) {
  switch (value) {
    case v1::POOLING_UNSPECIFIED:
      return model_pooling;
    case v1::POOLING_CLS:
      return Pooling::kCls;
    case v1::POOLING_MEAN:
      return Pooling::kMean;
    case v1::POOLING_MAX:
      return Pooling::kMax;
    case v1::POOLING_MEAN_SQRT_LEN:
      return Pooling::kMeanSqrtLen;
    case v1::POOLING_WEIGHTED_MEAN:
      return Pooling::kWeightedMean;
    case v1::POOLING_LAST_TOKEN:
      return Pooling::kLastToken;
    default:
      return UnknownEnum(field, value, v1::Pooling_MAX);
  }
}

absl::StatusOr<TruncateMode> ToTruncate(absl::string_view field, int value) {
  switch (value) {
    case v1::TRUNCATE_UNSPECIFIED:
    case v1::TRUNCATE_NONE:
      return TruncateMode::kNone;
    case v1::TRUNCATE_START:
      return TruncateMode::kStart;
    case v1::TRUNCATE_END:
      return TruncateMode::kEnd;
    default:
      return UnknownEnum(field, value, v1::Truncate_MAX);
  }
}

absl::StatusOr<bool> ToErrorsPerInput(absl::string_view field, int value) {
  switch (value) {
    case v1::ON_ERROR_UNSPECIFIED:
    case v1::ON_ERROR_FAIL_REQUEST:
      return false;
    case v1::ON_ERROR_PER_INPUT:
      return true;
    default:
      return UnknownEnum(field, value, v1::OnError_MAX);
  }
}

absl::StatusOr<bool> ToWithoutSpecialTokens(absl::string_view field,
                                            int value) {
  switch (value) {
    case v1::TOKEN_SPAN_UNSPECIFIED:
    case v1::TOKEN_SPAN_ALL:
      return false;
    case v1::TOKEN_SPAN_WITHOUT_SPECIAL_TOKENS:
      return true;
    default:
      return UnknownEnum(field, value, v1::TokenSpan_MAX);
  }
}

absl::StatusOr<VectorFormat> ToFormat(absl::string_view field, int value) {
  switch (value) {
    case v1::ENCODING_UNSPECIFIED:
    case v1::ENCODING_FLOAT32:
      return VectorFormat::kFloat32;
    case v1::ENCODING_FLOAT16:
      return VectorFormat::kFloat16;
    case v1::ENCODING_INT8:
      return VectorFormat::kInt8;
    case v1::ENCODING_UINT8:
      return VectorFormat::kUint8;
    case v1::ENCODING_BINARY:
      return VectorFormat::kBinary;
    case v1::ENCODING_UBINARY:
      return VectorFormat::kUbinary;
    default:
      return UnknownEnum(field, value, v1::Encoding_MAX);
  }
}

absl::StatusOr<std::string> FindPrompt(absl::string_view field,
                                       const ModelConfig& config,
                                       const std::string& asked) {
  const std::string& name = asked.empty() ? config.default_prompt_name : asked;
  if (name.empty()) return std::string();
  const auto at = config.prompts.find(name);
  if (at != config.prompts.end()) return at->second;
  std::string available;
  for (const auto& entry : config.prompts) {
    absl::StrAppend(&available, available.empty() ? "" : ", ", entry.first);
  }
  return MakeError(
      absl::StatusCode::kNotFound,
      absl::StrCat("no prompt '", ForMessage(name), "'; this model has ",
                   available.empty() ? "none" : available),
      {"PROMPT_NOT_FOUND",
       {{"prompt", ForMessage(name)}, {"available", available}},
       std::string(field)});
}

absl::StatusOr<std::optional<int32_t>> ToWindows(
    const v1::EmbedOptions& options, int32_t max_len, int32_t special_tokens) {
  if (!options.has_windows()) return std::nullopt;
  if (options.truncate() > v1::TRUNCATE_NONE) {
    const std::string truncate = v1::Truncate_Name(options.truncate());
    return BadOption("options.windows",
                     absl::StrCat("are asked for together with ", truncate,
                                  "; a long text is either cut or computed in "
                                  "windows"),
                     truncate, "TRUNCATE_NONE");
  }
  const int32_t most = std::max(max_len - special_tokens - 1, 0);
  const uint32_t overlap = options.windows().overlap();
  if (overlap > static_cast<uint32_t>(most)) {
    return BadOption(
        "options.windows.overlap",
        absl::StrCat("is ", overlap, "; windows of ", max_len, " tokens, ",
                     special_tokens, " of them special, share at most ", most),
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

absl::StatusOr<ByteRanges> ToRanges(const v1::EmbedOptions& options,
                                    VectorFormat format, int32_t dimensions) {
  constexpr char kMinimum[] = "options.ranges.minimum";
  constexpr char kMaximum[] = "options.ranges.maximum";
  if (!options.has_ranges()) return ByteRanges();
  if (format != VectorFormat::kInt8 && format != VectorFormat::kUint8) {
    const std::string encoding = v1::Encoding_Name(options.encoding());
    return BadOption("options.ranges",
                     absl::StrCat("are given with ", encoding,
                                  "; only INT8 and UINT8 have ranges"),
                     encoding, "ENCODING_INT8, ENCODING_UINT8");
  }
  const auto& minimum = options.ranges().minimum();
  const auto& maximum = options.ranges().maximum();
  absl::Status status = CheckBounds(kMinimum, minimum, dimensions);
  if (status.ok()) status = CheckBounds(kMaximum, maximum, dimensions);
  if (!status.ok()) return status;
  for (int i = 0; i < dimensions; ++i) {
    const std::string field = absl::StrCat(kMaximum, "[", i, "]");
    if (maximum[i] <= minimum[i]) {
      return BadOption(
          field,
          absl::StrCat("is ", maximum[i], "; it must be above the minimum, ",
                       minimum[i]),
          maximum[i], minimum[i]);
    }
    if (!std::isfinite(maximum[i] - minimum[i])) {
      return BadOption(
          field,
          absl::StrCat("is ", maximum[i], "; from the minimum, ", minimum[i],
                       ", it is further than a float can say"),
          maximum[i], minimum[i]);
    }
  }
  return ByteRanges::Make(minimum, maximum);
}

std::string ForMessage(absl::string_view name) {
  size_t end = std::min(name.size(), kMaxNameInMessage);
  const bool cut = end < name.size();
  while (cut && end > 0 &&
         (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) {
    --end;
  }
  return absl::StrCat(absl::Utf8SafeCEscape(name.substr(0, end)),
                      cut ? "..." : "");
}

}  // namespace encoderd
