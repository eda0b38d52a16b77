// Reads "normalizer" and "pre_tokenizer" of tokenizer.json. A sequence is read
// into its steps, also one within another.
#include "absl/strings/str_cat.h"
#include "engine/tokenizer/json_parts.h"

namespace encoderd::json_parts {
namespace {

absl::StatusOr<BertNormalizerOptions> ReadBertNormalizer(
    const JsonFields& fields) {
  BertNormalizerOptions out;
  absl::Status status = ReadBool(fields, "clean_text", &out.clean_text);
  if (status.ok()) {
    status =
        ReadBool(fields, "handle_chinese_chars", &out.handle_chinese_chars);
  }
  if (status.ok()) status = ReadBool(fields, "lowercase", &out.lowercase);
  if (!status.ok()) return status;
  const absl::StatusOr<bool> strip =
      fields.Bool("strip_accents", out.lowercase);
  if (!strip.ok()) return strip.status();
  out.strip_accents = *strip;
  return out;
}

absl::StatusOr<ByteLevelSplit> ReadByteLevel(const JsonFields& fields) {
  ByteLevelSplit out;
  absl::Status status =
      ReadBool(fields, "add_prefix_space", &out.add_prefix_space);
  if (!status.ok()) return status;
  const absl::StatusOr<bool> use_regex = fields.Bool("use_regex", true);
  if (!use_regex.ok()) return use_regex.status();
  out.use_regex = *use_regex;
  return out;
}

template <typename Step>
absl::Status Append(absl::StatusOr<Step> step,
                    std::vector<NormalizerStep>* out) {
  if (!step.ok()) return step.status();
  out->push_back(*std::move(step));
  return absl::OkStatus();
}

template <typename Step>
absl::Status Append(absl::StatusOr<Step> step,
                    std::vector<PreTokenizerStep>* out) {
  if (!step.ok()) return step.status();
  out->push_back(*std::move(step));
  return absl::OkStatus();
}

absl::Status ReadNormalizerStep(const Json& json,
                                std::vector<NormalizerStep>* out) {
  const absl::StatusOr<std::string> type = TypeOf(json, "normalizer");
  if (!type.ok()) return type.status();
  const JsonFields fields(json, absl::StrCat(kFile, ": normalizer"));
  if (*type == "BertNormalizer") {
    return Append(ReadBertNormalizer(fields), out);
  }
  return Unsupported("normalizer", *type, "BertNormalizer");
}

absl::Status ReadPreTokenizerStep(const Json& json,
                                  std::vector<PreTokenizerStep>* out) {
  const absl::StatusOr<std::string> type = TypeOf(json, "pre_tokenizer");
  if (!type.ok()) return type.status();
  const JsonFields fields(json, absl::StrCat(kFile, ": pre_tokenizer"));
  if (*type == "BertPreTokenizer") {
    out->push_back(BertSplit{});
    return absl::OkStatus();
  }
  if (*type == "ByteLevel") return Append(ReadByteLevel(fields), out);
  return Unsupported("pre_tokenizer", *type, "BertPreTokenizer, ByteLevel");
}

}  // namespace

absl::Status ReadNormalizer(const Json* json, TokenizerSpec* out) {
  if (json == nullptr) return absl::OkStatus();
  return ReadNormalizerStep(*json, &out->normalizer);
}

absl::Status ReadPreTokenizer(const Json* json, TokenizerSpec* out) {
  if (json == nullptr) return absl::OkStatus();
  return ReadPreTokenizerStep(*json, &out->pre_tokenizer);
}

}  // namespace encoderd::json_parts
