// Reads vocab.json ({ entry: id }) and merges.txt ("a b", the earlier line the
// sooner), GPT-2's and RoBERTa's files before tokenizer.json, and the settings
// of tokenizer_config.json.
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "engine/tokenizer/files/config_tokens.h"
#include "engine/tokenizer/files/json_parts.h"
#include "engine/tokenizer/files/tokenizer_config.h"
#include "engine/tokenizer/files/tokenizer_spec.h"

namespace encoderd {
namespace {

constexpr char kVocabFile[] = "vocab.json";
constexpr char kMergesFile[] = "merges.txt";
constexpr absl::string_view kClasses[] = {"RobertaTokenizer",
                                          "RobertaTokenizerFast"};
constexpr absl::string_view kGpt2Classes[] = {"GPT2Tokenizer",
                                              "GPT2TokenizerFast"};
constexpr char kGpt2End[] = "<|endoftext|>";

absl::Status ReadMerges(const Folder& folder, TokenizerSpec* out) {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(folder, kMergesFile, TokenizerSpec::kMaxFileBytes);
  if (!text.ok()) return text.status();
  const VocabularyIndex index = IndexVocabulary(out->vocabulary);
  BytePairOptions options;
  int64_t line = 0;
  for (const absl::string_view merge :
       absl::StrSplit(absl::StripSuffix(*text, "\n"), '\n')) {
    absl::Status status = json_parts::AddMerge(
        absl::StripSuffix(merge, "\r"),
        absl::StrCat(kMergesFile, " line ", ++line), index, &options);
    if (!status.ok()) return status;
  }
  out->model = std::move(options);
  return absl::OkStatus();
}

absl::Status ReadRoberta(const JsonFields& config, TokenizerSpec* out) {
  const absl::StatusOr<bool> trim = config.Bool("trim_offsets", true);
  if (!trim.ok()) return trim.status();
  out->post_processor.trim_offsets = *trim;
  constexpr NamedToken kTokens[] = {
      {"cls_token", "<s>", true},     {"sep_token", "</s>", true},
      {"bos_token", "<s>", false},    {"eos_token", "</s>", false},
      {"unk_token", "<unk>", false},  {"pad_token", "<pad>", false},
      {"mask_token", "<mask>", false}};
  const absl::StatusOr<std::vector<int32_t>> ids =
      AddNamedTokens(config, kTokens, kVocabFile, out);
  if (!ids.ok()) return ids.status();
  out->post_processor.pieces = Template::Roberta((*ids)[0], (*ids)[1]);
  return absl::OkStatus();
}

// No template, unless the configuration asks for one; offsets stay whole.
absl::Status ReadGpt2(const JsonFields& config, TokenizerSpec* out) {
  for (const char* key : {"add_bos_token", "add_eos_token"}) {
    const absl::StatusOr<bool> adds = config.Bool(key, false);
    if (!adds.ok()) return adds.status();
    if (*adds) {
      return absl::UnimplementedError(absl::StrCat(
          tokenizer_config::kFile, ": ", key, " true next to ", kVocabFile,
          " is not supported; save the tokenizer as tokenizer.json"));
    }
  }
  constexpr NamedToken kTokens[] = {{"unk_token", kGpt2End, false},
                                    {"bos_token", kGpt2End, false},
                                    {"eos_token", kGpt2End, false},
                                    {"pad_token", kGpt2End, false}};
  return AddNamedTokens(config, kTokens, kVocabFile, out).status();
}

// Without a class in the configuration, the vocabulary tells: RoBERTa's has
// <s>, GPT-2's only <|endoftext|>.
bool IsGpt2(const std::string& name,
            const std::vector<std::string>& vocabulary) {
  if (!name.empty()) return absl::c_linear_search(kGpt2Classes, name);
  return absl::c_linear_search(vocabulary, kGpt2End) &&
         !absl::c_linear_search(vocabulary, "<s>");
}

absl::Status ReadConfig(const Folder& folder, const JsonFields& config,
                        TokenizerSpec* out) {
  const absl::StatusOr<tokenizer_config::ClassName> read =
      tokenizer_config::ReadClass(folder, config);
  if (!read.ok()) return read.status();
  const absl::StatusOr<bool> prefix = config.Bool("add_prefix_space", false);
  if (!prefix.ok()) return prefix.status();
  out->pre_tokenizer = {ByteLevelSplit{*prefix, true}};
  out->post_processor.add_prefix_space = *prefix;
  if (IsGpt2(read->name, out->vocabulary)) return ReadGpt2(config, out);
  absl::Status status = tokenizer_config::CheckClass(
      *read, kClasses, "RobertaTokenizer, GPT2Tokenizer");
  if (!status.ok()) return status;
  return ReadRoberta(config, out);
}

}  // namespace

absl::StatusOr<TokenizerSpec> ReadVocabularyAndMerges(const Folder& folder) {
  TokenizerSpec spec;
  JsonLimits limits;
  limits.max_bytes = TokenizerSpec::kMaxFileBytes;
  const absl::StatusOr<Json> vocab = ReadJsonObject(folder, kVocabFile, limits);
  if (!vocab.ok()) return vocab.status();
  absl::Status status =
      json_parts::ReadEntries(*vocab, kVocabFile, &spec.vocabulary);
  if (status.ok()) status = ReadMerges(folder, &spec);
  if (!status.ok()) return status;
  status = ReadTokenizerConfig(
      folder, kVocabFile,
      [&](const JsonFields& config) {
        return ReadConfig(folder, config, &spec);
      },
      &spec);
  if (!status.ok()) return status;
  return spec;
}

}  // namespace encoderd
