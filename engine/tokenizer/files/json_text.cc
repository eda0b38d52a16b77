// Reads "normalizer" and "pre_tokenizer" of tokenizer.json. A sequence is read
// into its steps, also one within another.
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/files/json_parts.h"

namespace encoderd::json_parts {
namespace {

absl::StatusOr<BertNormalizerOptions> ReadBertNormalizer(
    const JsonFields& fields) {
  BertNormalizerOptions out;
  absl::Status status;
  Take(fields.Bool("clean_text"), &out.clean_text, &status);
  Take(fields.Bool("handle_chinese_chars"), &out.handle_chinese_chars, &status);
  Take(fields.Bool("lowercase"), &out.lowercase, &status);
  Take(fields.Bool("strip_accents", out.lowercase), &out.strip_accents,
       &status);
  if (!status.ok()) return status;
  return out;
}

absl::StatusOr<ByteLevelSplit> ReadByteLevel(const JsonFields& fields) {
  ByteLevelSplit out;
  absl::Status status;
  Take(fields.Bool("add_prefix_space"), &out.add_prefix_space, &status);
  Take(fields.Bool("use_regex", true), &out.use_regex, &status);
  if (!status.ok()) return status;
  return out;
}

// "precompiled_charsmap": base64.
absl::StatusOr<CharsMap> ReadCharsMap(const JsonFields& fields) {
  const absl::StatusOr<std::string> text =
      fields.String("precompiled_charsmap");
  if (!text.ok()) return text.status();
  std::string bytes;
  if (!absl::Base64Unescape(*text, &bytes)) {
    return Bad("normalizer.precompiled_charsmap", "base64");
  }
  absl::StatusOr<CharsMap> map = CharsMap::Parse(bytes);
  if (!map.ok()) {
    return absl::DataLossError(absl::StrCat(
        kFile, ": normalizer.precompiled_charsmap: ", map.status().message()));
  }
  return map;
}

// The one character of `text`; false when it is not one.
bool IsOneCharacter(absl::string_view text) {
  if (text.empty()) return false;
  int length = 0;
  utf8::Decode(reinterpret_cast<const uint8_t*>(text.data()), &length);
  return static_cast<size_t>(length) == text.size();
}

// Expressions for runs of a space, "X{n,}" and "X+", where X is one character
// that means itself.
bool ReadRuns(absl::string_view expression, ReplaceStep* out) {
  int32_t least = 0;
  if (absl::EndsWith(expression, "+")) {
    least = 1;
    expression.remove_suffix(1);
  } else if (absl::EndsWith(expression, ",}")) {
    const size_t open = expression.rfind('{');
    if (open == absl::string_view::npos) return false;
    const absl::string_view number =
        expression.substr(open + 1, expression.size() - open - 3);
    // With a blank or a sign the braces mean themselves.
    if (!absl::c_all_of(number, absl::ascii_isdigit) ||
        !absl::SimpleAtoi(number, &least)) {
      return false;
    }
    expression = expression.substr(0, open);
  }
  if (least < 1 || least > 1000 || !IsOneCharacter(expression) ||
      absl::StrContains("\\^$.|?*+()[]{}", expression)) {
    return false;
  }
  out->pattern = std::string(expression);
  out->min_run = least;
  return true;
}

// "pattern": {"String": "a"} or {"Regex": "a{2,}"}; "content".
absl::StatusOr<ReplaceStep> ReadReplace(const JsonFields& fields) {
  ReplaceStep out;
  absl::StatusOr<std::string> content = fields.String("content");
  if (!content.ok()) return content.status();
  out.content = *std::move(content);
  const Json* pattern = fields.Find("pattern");
  if (pattern == nullptr || !pattern->is_object() || pattern->size() != 1 ||
      !pattern->front().is_string()) {
    return Bad("normalizer.pattern", "{\"String\"} or {\"Regex\"}");
  }
  const std::string& kind = pattern->begin().key();
  const auto& text = pattern->front().get_ref<const std::string&>();
  if (kind == "Regex") {
    if (!ReadRuns(text, &out)) {
      return Unsupported("normalizer Replace of the expression", text,
                         "runs of one character, as ' {2,}'");
    }
    return out;
  }
  if (kind != "String" || text.empty()) {
    return Bad("normalizer.pattern", "a string that is not empty");
  }
  out.pattern = text;
  return out;
}

absl::StatusOr<StripStep> ReadStrip(const JsonFields& fields) {
  StripStep out;
  absl::Status status;
  Take(fields.Bool("strip_left"), &out.left, &status);
  Take(fields.Bool("strip_right"), &out.right, &status);
  if (!status.ok()) return status;
  return out;
}

absl::StatusOr<PrependStep> ReadPrepend(const JsonFields& fields) {
  absl::StatusOr<std::string> text = fields.String("prepend");
  if (!text.ok()) return text.status();
  if (text->empty())
    return Unsupported("normalizer Prepend of", "", "any text");
  return PrependStep{*std::move(text)};
}

absl::StatusOr<MetaspaceSplit> ReadMetaspace(const JsonFields& fields) {
  MetaspaceSplit out;
  absl::StatusOr<std::string> mark = fields.String("replacement");
  if (!mark.ok()) return mark.status();
  if (!IsOneCharacter(*mark)) {
    return Bad("pre_tokenizer.replacement", "one character");
  }
  int length = 0;
  out.mark =
      utf8::Decode(reinterpret_cast<const uint8_t*>(mark->data()), &length);
  const absl::StatusOr<std::string> scheme =
      fields.String("prepend_scheme", "always");
  if (!scheme.ok()) return scheme.status();
  // An older file says it by a flag.
  const absl::StatusOr<bool> prefix = fields.Bool("add_prefix_space", true);
  if (!prefix.ok()) return prefix.status();
  if (*scheme == "always") {
    out.prepend = MetaspaceSplit::kAlways;
  } else if (*scheme == "first") {
    out.prepend = MetaspaceSplit::kFirst;
  } else if (*scheme == "never") {
    out.prepend = MetaspaceSplit::kNever;
  } else {
    return Unsupported("pre_tokenizer.prepend_scheme", *scheme,
                       "always, first, never");
  }
  if (!*prefix) {
    const bool declared = fields.Find("prepend_scheme") != nullptr;
    if (declared && out.prepend != MetaspaceSplit::kNever) {
      return Bad("pre_tokenizer.add_prefix_space",
                 absl::StrCat("true with prepend_scheme ", *scheme));
    }
    out.prepend = MetaspaceSplit::kNever;
  }
  const absl::StatusOr<bool> split = fields.Bool("split", true);
  if (!split.ok()) return split.status();
  out.split = *split;
  return out;
}

template <typename Step, typename Steps>
absl::Status Append(absl::StatusOr<Step> step, Steps* out) {
  if (!step.ok()) return step.status();
  if (out->size() == kMaxSteps) {
    return Bad("a sequence", absl::StrCat("of at most ", kMaxSteps, " steps"));
  }
  out->emplace_back(std::in_place_type<Step>, *std::move(step));
  return absl::OkStatus();
}

template <typename Step, typename Steps>
absl::Status AppendPlain(Step step, Steps* out) {
  return Append(absl::StatusOr<Step>(std::move(step)), out);
}

absl::Status ReadNormalizerStep(const Json& json,
                                std::vector<NormalizerStep>* out) {
  const absl::StatusOr<std::string> type = TypeOf(json, "normalizer");
  if (!type.ok()) return type.status();
  const JsonFields fields(json, absl::StrCat(kFile, ": normalizer"));
  if (*type == "Sequence") {
    const auto steps = ReadSequence(json, "normalizers", "normalizer");
    if (!steps.ok()) return steps.status();
    for (const Json* step : *steps) {
      absl::Status status = ReadNormalizerStep(*step, out);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  using unicode::Form;
  constexpr std::pair<const char*, Form> kForms[] = {{"NFC", Form::kNfc},
                                                     {"NFD", Form::kNfd},
                                                     {"NFKC", Form::kNfkc},
                                                     {"NFKD", Form::kNfkd}};
  for (const auto& [name, form] : kForms) {
    if (*type == name) return AppendPlain(UnicodeFormStep{form}, out);
  }
  if (*type == "BertNormalizer") {
    return Append(ReadBertNormalizer(fields), out);
  }
  if (*type == "Lowercase") return AppendPlain(LowercaseStep{}, out);
  if (*type == "Precompiled") return Append(ReadCharsMap(fields), out);
  if (*type == "Prepend") return Append(ReadPrepend(fields), out);
  if (*type == "Replace") return Append(ReadReplace(fields), out);
  if (*type == "Strip") return Append(ReadStrip(fields), out);
  if (*type == "StripAccents") return AppendPlain(StripAccentsStep{}, out);
  return Unsupported("normalizer", *type,
                     "BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, "
                     "Precompiled, Prepend, Replace, Sequence, Strip, "
                     "StripAccents");
}

absl::Status ReadPreTokenizerStep(const Json& json,
                                  std::vector<PreTokenizerStep>* out) {
  const absl::StatusOr<std::string> type = TypeOf(json, "pre_tokenizer");
  if (!type.ok()) return type.status();
  const JsonFields fields(json, absl::StrCat(kFile, ": pre_tokenizer"));
  if (*type == "Sequence") {
    const auto steps = ReadSequence(json, "pretokenizers", "pre_tokenizer");
    if (!steps.ok()) return steps.status();
    for (const Json* step : *steps) {
      absl::Status status = ReadPreTokenizerStep(*step, out);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  if (*type == "BertPreTokenizer") return AppendPlain(BertSplit{}, out);
  if (*type == "ByteLevel") return Append(ReadByteLevel(fields), out);
  if (*type == "Metaspace") return Append(ReadMetaspace(fields), out);
  if (*type == "Whitespace") return AppendPlain(WordSplit{}, out);
  if (*type == "WhitespaceSplit") return AppendPlain(WhitespaceSplit{}, out);
  return Unsupported("pre_tokenizer", *type,
                     "BertPreTokenizer, ByteLevel, Metaspace, Sequence, "
                     "Whitespace, WhitespaceSplit");
}

}  // namespace

absl::Status ReadNormalizer(const Json* json, TokenizerSpec* out) {
  if (json == nullptr) return absl::OkStatus();
  const absl::Status status = ReadNormalizerStep(*json, &out->normalizer);
  if (!status.ok()) return status;
  const auto is_lowercase = [](const Json& step) {
    return step.at("type") == "Lowercase";
  };
  out->lowercase_on_top =
      is_lowercase(*json) ||
      (json->at("type") == "Sequence" &&
       absl::c_any_of(json->at("normalizers"), is_lowercase));
  return absl::OkStatus();
}

absl::Status ReadPreTokenizer(const Json* json, TokenizerSpec* out) {
  if (json == nullptr) return absl::OkStatus();
  return ReadPreTokenizerStep(*json, &out->pre_tokenizer);
}

}  // namespace encoderd::json_parts
