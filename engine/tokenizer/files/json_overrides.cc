#include "engine/tokenizer/files/json_overrides.h"

#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/io/json.h"
#include "engine/tokenizer/files/config_tokens.h"
#include "engine/tokenizer/files/tokenizer_config.h"

namespace encoderd {
namespace {

// Classes whose settings beat the file, without "Fast"; "" where nothing names
// one.
constexpr absl::string_view kBert[] = {"",
                                       "BertTokenizer",
                                       "ConvBertTokenizer",
                                       "DPRContextEncoderTokenizer",
                                       "DPRQuestionEncoderTokenizer",
                                       "DPRReaderTokenizer",
                                       "DistilBertTokenizer",
                                       "ElectraTokenizer",
                                       "LayoutLMTokenizer",
                                       "LxmertTokenizer",
                                       "MPNetTokenizer",
                                       "MobileBertTokenizer",
                                       "RetriBertTokenizer",
                                       "SqueezeBertTokenizer"};
constexpr absl::string_view kRoberta[] = {
    "", "BartTokenizer", "LongformerTokenizer", "RobertaTokenizer"};
constexpr absl::string_view kGpt2[] = {"GPT2Tokenizer"};
// Those of them with which transformers 5 leaves the file's other parts alone.
constexpr absl::string_view kPlain[] = {"", "ConvBertTokenizer",
                                        "RetriBertTokenizer"};
// The class of a model_type, where no file names a class.
constexpr std::pair<absl::string_view, absl::string_view> kOfModelTypes[] = {
    {"albert", "AlbertTokenizer"},       {"bert", "BertTokenizer"},
    {"camembert", "CamembertTokenizer"}, {"distilbert", "DistilBertTokenizer"},
    {"electra", "ElectraTokenizer"},     {"gpt2", "GPT2Tokenizer"},
    {"modernbert", "TokenizersBackend"}, {"mpnet", "MPNetTokenizer"},
    {"roberta", "RobertaTokenizer"},     {"xlm-roberta", "XLMRobertaTokenizer"},
};

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
      " applies; transformers would use ", Show(fallback), ", because ",
      tokenizer_config::kFile, " does not set ", setting.key));
}

constexpr Setting kLowercase = {"do_lower_case", "lowercase"};
constexpr Setting kAccents = {"strip_accents", "strip_accents"};
constexpr Setting kChinese = {"tokenize_chinese_chars", "handle_chinese_chars"};
constexpr Setting kPrefixSpace = {"add_prefix_space", "add_prefix_space"};

void Settle(const JsonFields& fields, const Setting& setting, bool value,
            bool* held, TokenizerRemarks* remarks) {
  if (fields.Find(setting.key) != nullptr) {
    Take(setting, value, held, remarks);
  } else {
    WarnOfDefault(setting, value, *held, remarks);
  }
}

absl::Status OverrideBert(const JsonFields& fields, BertNormalizerOptions* bert,
                          TokenizerRemarks* remarks) {
  // Where strip_accents is not set, it follows do_lower_case.
  const absl::StatusOr<bool> lower = fields.Bool(kLowercase.key, true);
  if (!lower.ok()) return lower.status();
  const absl::StatusOr<bool> strip = fields.Bool(kAccents.key, *lower);
  if (!strip.ok()) return strip.status();
  const absl::StatusOr<bool> chinese = fields.Bool(kChinese.key, true);
  if (!chinese.ok()) return chinese.status();
  const bool sets_case = fields.Find(kLowercase.key) != nullptr;
  const bool agrees = *lower == bert->lowercase;
  Settle(fields, kLowercase, *lower, &bert->lowercase, remarks);
  if (fields.Find(kAccents.key) != nullptr) {
    Take(kAccents, *strip, &bert->strip_accents, remarks);
  } else if (!agrees) {  // what is said of case holds for accents
    if (sets_case) bert->strip_accents = *strip;
  } else if (sets_case) {
    Take(kAccents, *strip, &bert->strip_accents, remarks);
  } else {
    WarnOfDefault(kAccents, *strip, bert->strip_accents, remarks);
  }
  Settle(fields, kChinese, *chinese, &bert->handle_chinese_chars, remarks);
  return absl::OkStatus();
}

absl::Status OverrideByteLevel(const JsonFields& fields, bool is_gpt2,
                               ByteLevelSplit* split, TokenizerSpec* spec) {
  const absl::StatusOr<bool> prefix = fields.Bool(kPrefixSpace.key, false);
  if (!prefix.ok()) return prefix.status();
  Settle(fields, kPrefixSpace, *prefix, &split->add_prefix_space,
         &spec->remarks);
  if (!is_gpt2 && fields.Find(kPrefixSpace.key) != nullptr)
    spec->post_processor.add_prefix_space = *prefix;
  return absl::OkStatus();
}

// For a class of BERT's kind next to a tokenizer.json without a normalizer.
absl::Status AddNormalizer(const JsonFields& fields, absl::string_view name,
                           TokenizerSpec* spec) {
  const bool sets = absl::c_any_of(
      std::initializer_list<Setting>{kLowercase, kAccents, kChinese},
      [&](const Setting& x) { return fields.Find(x.key) != nullptr; });
  if (!sets) {
    spec->remarks.warnings.push_back(absl::StrCat(
        "tokenizer.json's normalizer null applies; transformers would use "
        "BertNormalizer, because ",
        tokenizer_config::kFile, " does not set ", kLowercase.key));
    return absl::OkStatus();
  }
  BertNormalizerOptions bert;
  TokenizerRemarks replaced;  // nothing is
  const absl::Status status = OverrideBert(fields, &bert, &replaced);
  if (!status.ok()) return status;
  spec->normalizer = {bert};
  spec->remarks.notes.push_back(absl::StrCat(
      tokenizer_config::kFile, ": its ", name,
      " normalizes texts, which tokenizer.json does not, as in transformers"));
  return absl::OkStatus();
}

// Parts that the class sets in transformers 5, where it takes little more than
// the vocabulary from tokenizer.json; in version 4 the file applies.
void WarnOfClass(absl::string_view name, TokenizerSpec* spec) {
  const auto warn = [&](bool differs, absl::string_view part,
                        absl::string_view fallback) {
    if (!differs) return;
    spec->remarks.warnings.push_back(absl::StrCat(
        "tokenizer.json's ", part, " applies; transformers 5 would use ",
        fallback, ", because its ", name, " ignores that of the file"));
  };
  if (absl::c_linear_search(kBert, name)) {
    const auto* const model = std::get_if<WordPieceOptions>(&spec->model);
    if (model == nullptr) return;
    const WordPieceOptions usual;
    warn(model->max_word_chars != usual.max_word_chars,
         absl::StrCat("max_input_chars_per_word ", model->max_word_chars),
         absl::StrCat(usual.max_word_chars));
    warn(model->continuing_prefix != usual.continuing_prefix,
         absl::StrCat("continuing_subword_prefix ",
                      Quote(model->continuing_prefix)),
         Quote(usual.continuing_prefix));
    for (const NormalizerStep& step : spec->normalizer) {
      const auto* const bert = std::get_if<BertNormalizerOptions>(&step);
      warn(bert != nullptr && !bert->clean_text, "clean_text false", "true");
    }
    return;
  }
  const auto* const model = std::get_if<BytePairOptions>(&spec->model);
  if (model == nullptr) return;
  warn(model->ignore_merges, "ignore_merges true", "false");
  warn(!spec->normalizer.empty(), "normalizer", "none");
  warn(spec->pre_tokenizer.size() > 1, "pre_tokenizer", "ByteLevel alone");
  for (const PreTokenizerStep& step : spec->pre_tokenizer) {
    const auto* const split = std::get_if<ByteLevelSplit>(&step);
    warn(split != nullptr && !split->use_regex, "use_regex false", "true");
  }
}

// The class, without "Fast"; that of the model_type where no file names one.
absl::string_view NameOf(const tokenizer_config::ClassName& read) {
  if (!read.name.empty()) return absl::StripSuffix(read.name, "Fast");
  for (const auto& [model_type, name] : kOfModelTypes)
    if (read.model_type == model_type) return name;
  return "";
}

}  // namespace

absl::Status OverrideByConfig(const Folder& folder, TokenizerSpec* spec) {
  const absl::StatusOr<Json> config = tokenizer_config::Read(folder);
  if (!config.ok()) return config.status();
  const JsonFields fields(*config, tokenizer_config::kFile);
  const absl::StatusOr<tokenizer_config::ClassName> read =
      tokenizer_config::ReadClass(folder, fields);
  if (!read.ok()) return read.status();
  const absl::string_view name = NameOf(*read);
  absl::Status status = tokenizer_config::CheckCommon(fields, &spec->remarks);
  auto& normalizer = spec->normalizer;
  const bool is_bert = absl::c_linear_search(kBert, name);
  auto* const bert =
      normalizer.size() == 1
          ? std::get_if<BertNormalizerOptions>(&normalizer.front())
          : nullptr;
  if (status.ok() && bert != nullptr && is_bert) {
    status = OverrideBert(fields, bert, &spec->remarks);
  }
  if (status.ok() && normalizer.empty() && is_bert && !name.empty() &&
      std::holds_alternative<WordPieceOptions>(spec->model)) {
    status = AddNormalizer(fields, name, spec);
  }
  const bool is_gpt2 = absl::c_linear_search(kGpt2, name);
  for (PreTokenizerStep& step : spec->pre_tokenizer) {
    auto* const split = std::get_if<ByteLevelSplit>(&step);
    if (status.ok() && split != nullptr &&
        (is_gpt2 || absl::c_linear_search(kRoberta, name))) {
      status = OverrideByteLevel(fields, is_gpt2, split, spec);
    }
  }
  if (!status.ok()) return status;
  const bool sets_parts =
      is_bert || is_gpt2 || absl::c_linear_search(kRoberta, name);
  // Of ModernBERT's, transformers 5 takes the file as it is.
  if (sets_parts && !absl::c_linear_search(kPlain, name) &&
      read->model_type != "modernbert") {
    WarnOfClass(name, spec);
  }
  return AddConfigTokens(folder, fields, spec);
}

}  // namespace encoderd
