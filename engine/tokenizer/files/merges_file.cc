// Reads vocab.json ({ entry: id }) and merges.txt ("a b", the earlier line the
// sooner), RoBERTa's files before tokenizer.json, and what
// tokenizer_config.json says beside them.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "engine/tokenizer/files/json_parts.h"
#include "engine/tokenizer/files/tokenizer_config.h"
#include "engine/tokenizer/files/tokenizer_spec.h"

namespace encoderd {
namespace {

constexpr char kVocabFile[] = "vocab.json";
constexpr char kMergesFile[] = "merges.txt";
constexpr absl::string_view kClasses[] = {"RobertaTokenizer",
                                          "RobertaTokenizerFast"};

absl::Status ReadMerges(const std::string& folder, TokenizerSpec* out) {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(folder, kMergesFile, TokenizerSpec::kMaxFileBytes);
  if (!text.ok()) return text.status();
  const VocabularyIndex index = IndexVocabulary(out->vocabulary);
  BytePairOptions options;
  absl::string_view left = *text;
  for (int64_t line = 1; !left.empty(); ++line) {
    const size_t end = std::min(left.find('\n'), left.size());
    absl::string_view merge = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (!merge.empty() && merge.back() == '\r') merge.remove_suffix(1);
    absl::Status status = json_parts::AddMerge(
        merge, absl::StrCat(kMergesFile, " line ", line), index, &options);
    if (!status.ok()) return status;
  }
  out->model = std::move(options);
  return absl::OkStatus();
}

absl::Status ReadConfig(const JsonFields& config, TokenizerSpec* out) {
  absl::Status status =
      tokenizer_config::CheckClass(config, kClasses, "RobertaTokenizer");
  if (!status.ok()) return status;
  const absl::StatusOr<bool> prefix = config.Bool("add_prefix_space", false);
  if (!prefix.ok()) return prefix.status();
  const absl::StatusOr<bool> trim = config.Bool("trim_offsets", true);
  if (!trim.ok()) return trim.status();
  out->pre_tokenizer = {ByteLevelSplit{*prefix, true}};
  out->post_processor.trim_offsets = *trim;
  out->post_processor.add_prefix_space = *prefix;

  struct Named {
    const char* key;
    const char* fallback;
    bool needed;
  };
  constexpr Named kTokens[] = {
      {"cls_token", "<s>", true},     {"sep_token", "</s>", true},
      {"bos_token", "<s>", false},    {"eos_token", "</s>", false},
      {"unk_token", "<unk>", false},  {"pad_token", "<pad>", false},
      {"mask_token", "<mask>", false}};
  int32_t ids[2] = {0, 0};
  for (size_t i = 0; i < std::size(kTokens); ++i) {
    absl::StatusOr<AddedToken> token = tokenizer_config::SpecialToken(
        config, kTokens[i].key, kTokens[i].fallback);
    if (!token.ok()) return token.status();
    const auto found = std::find(out->vocabulary.begin(), out->vocabulary.end(),
                                 token->content);
    if (found == out->vocabulary.end()) {
      if (!kTokens[i].needed) continue;
      return absl::DataLossError(absl::StrCat(kVocabFile, " lacks the ",
                                              kTokens[i].key, " ",
                                              Quote(token->content)));
    }
    token->id = static_cast<int32_t>(found - out->vocabulary.begin());
    if (kTokens[i].needed) ids[i] = token->id;
    const bool twice = std::any_of(
        out->added_tokens.begin(), out->added_tokens.end(),
        [&](const AddedToken& x) { return x.content == token->content; });
    if (!twice) out->added_tokens.push_back(*std::move(token));
  }
  out->post_processor.pieces = Template::Roberta(ids[0], ids[1]);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizerSpec> ReadVocabularyAndMerges(
    const std::string& folder) {
  TokenizerSpec spec;
  JsonLimits limits;
  limits.max_bytes = TokenizerSpec::kMaxFileBytes;
  const absl::StatusOr<Json> vocab = ReadJsonObject(folder, kVocabFile, limits);
  if (!vocab.ok()) return vocab.status();
  absl::Status status =
      json_parts::ReadEntries(*vocab, kVocabFile, &spec.vocabulary);
  if (status.ok()) status = ReadMerges(folder, &spec);
  if (!status.ok()) return status;
  const absl::StatusOr<Json> config = tokenizer_config::Read(folder);
  if (!config.ok()) return config.status();
  const JsonFields fields(*config, tokenizer_config::kFile);
  status = ReadConfig(fields, &spec);
  if (status.ok()) {
    status = tokenizer_config::CheckAddedTokens(folder, fields,
                                                spec.added_tokens, kVocabFile);
  }
  if (!status.ok()) return status;
  return spec;
}

}  // namespace encoderd
