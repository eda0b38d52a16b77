#include "engine/tokenizer/files/json_overrides.h"

#include <algorithm>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "engine/tokenizer/files/tokenizer_config.h"

namespace encoderd {
namespace {

// Classes whose settings beat the file, without "Fast"; so do they where no
// file names a class.
constexpr absl::string_view kBert[] = {"", "BertTokenizer",
                                       "DistilBertTokenizer",
                                       "ElectraTokenizer", "MPNetTokenizer"};
constexpr absl::string_view kByteLevel[] = {"", "RobertaTokenizer",
                                            "GPT2Tokenizer"};

bool Contains(absl::Span<const absl::string_view> list,
              absl::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

const char* Show(bool value) { return value ? "true" : "false"; }

// One setting of both files.
struct Setting {
  const char* key;      // of tokenizer_config.json
  const char* in_json;  // of tokenizer.json
};

// Takes `config`, what tokenizer_config.json says, over *value; a note tells.
void Take(const Setting& setting, bool config, bool* value,
          TokenizerRemarks* remarks) {
  if (config == *value) return;
  remarks->notes.push_back(
      absl::StrCat(tokenizer_config::kFile, ": ", setting.key, " ",
                   Show(config), " replaces tokenizer.json's ", setting.in_json,
                   " ", Show(*value), ", as in transformers"));
  *value = config;
}

void WarnOfDefault(const Setting& setting, bool fallback, bool value,
                   TokenizerRemarks* remarks) {
  if (fallback == value) return;
  remarks->warnings.push_back(absl::StrCat(
      "tokenizer.json's ", setting.in_json, " ", Show(value),
      " holds; transformers would take ", Show(fallback), ", because ",
      tokenizer_config::kFile, " does not set ", setting.key));
}

constexpr Setting kLowercase = {"do_lower_case", "lowercase"};
constexpr Setting kAccents = {"strip_accents", "strip_accents"};
constexpr Setting kChinese = {"tokenize_chinese_chars", "handle_chinese_chars"};
constexpr Setting kPrefixSpace = {"add_prefix_space", "add_prefix_space"};

absl::Status OverrideBert(const Json& config, const JsonFields& fields,
                          BertNormalizerOptions* bert,
                          TokenizerRemarks* remarks) {
  // Where strip_accents is not set, it follows do_lower_case.
  const absl::StatusOr<bool> lower = fields.Bool(kLowercase.key, true);
  if (!lower.ok()) return lower.status();
  const absl::StatusOr<bool> strip = fields.Bool(kAccents.key, *lower);
  if (!strip.ok()) return strip.status();
  const absl::StatusOr<bool> chinese = fields.Bool(kChinese.key, true);
  if (!chinese.ok()) return chinese.status();
  const auto settle = [&](const Setting& setting, bool is_set, bool value,
                          bool* held) {
    if (is_set) {
      Take(setting, value, held, remarks);
    } else {
      WarnOfDefault(setting, value, *held, remarks);
    }
  };
  const bool sets_case = config.contains(kLowercase.key);
  settle(kLowercase, sets_case, *lower, &bert->lowercase);
  settle(kAccents, sets_case || config.contains(kAccents.key), *strip,
         &bert->strip_accents);
  settle(kChinese, config.contains(kChinese.key), *chinese,
         &bert->handle_chinese_chars);
  return absl::OkStatus();
}

absl::Status OverrideByteLevel(const JsonFields& fields, ByteLevelSplit* split,
                               TokenizerSpec* spec) {
  if (fields.Find(kPrefixSpace.key) == nullptr) return absl::OkStatus();
  const absl::StatusOr<bool> prefix = fields.Bool(kPrefixSpace.key);
  if (!prefix.ok()) return prefix.status();
  Take(kPrefixSpace, *prefix, &split->add_prefix_space, &spec->remarks);
  spec->post_processor.add_prefix_space = *prefix;
  return absl::OkStatus();
}

absl::Status NoteTruncation(const JsonFields& fields,
                            TokenizerRemarks* remarks) {
  constexpr char kKey[] = "truncation_side";
  const absl::StatusOr<std::string> side = fields.String(kKey, "right");
  if (!side.ok()) return side.status();
  if (*side == "left") {
    remarks->notes.push_back(
        absl::StrCat(tokenizer_config::kFile, ": ", kKey,
                     " is left: transformers cuts the start of long texts; a "
                     "request chooses "
                     "that by TRUNCATE_START"));
  }
  return absl::OkStatus();
}

absl::Status CheckSpecialTokens(const JsonFields& fields) {
  constexpr char kKey[] = "split_special_tokens";
  const absl::StatusOr<bool> split = fields.Bool(kKey, false);
  if (!split.ok()) return split.status();
  if (!*split) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(tokenizer_config::kFile, ": ",
                                               kKey, " true is not supported"));
}

}  // namespace

absl::Status OverrideByConfig(const std::string& folder, TokenizerSpec* spec) {
  const absl::StatusOr<Json> config = tokenizer_config::Read(folder);
  if (!config.ok()) return config.status();
  const JsonFields fields(*config, tokenizer_config::kFile);
  const absl::StatusOr<tokenizer_config::ClassName> read =
      tokenizer_config::ReadClass(folder, fields);
  if (!read.ok()) return read.status();
  const absl::string_view name = absl::StripSuffix(read->name, "Fast");

  absl::Status status = CheckSpecialTokens(fields);
  if (status.ok()) status = NoteTruncation(fields, &spec->remarks);
  auto& normalizer = spec->normalizer;
  auto* const bert =
      normalizer.size() == 1
          ? std::get_if<BertNormalizerOptions>(&normalizer.front())
          : nullptr;
  if (status.ok() && bert != nullptr && Contains(kBert, name)) {
    status = OverrideBert(*config, fields, bert, &spec->remarks);
  }
  for (PreTokenizerStep& step : spec->pre_tokenizer) {
    auto* const split = std::get_if<ByteLevelSplit>(&step);
    if (status.ok() && split != nullptr && Contains(kByteLevel, name))
      status = OverrideByteLevel(fields, split, spec);
  }
  if (!status.ok()) return status;
  return tokenizer_config::CheckDecoder(fields, spec->added_tokens,
                                        "tokenizer.json",
                                        "; save the tokenizer again");
}

}  // namespace encoderd
