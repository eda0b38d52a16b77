// Reads vocab.txt, one entry per line without the white space at its end, id by
// line number, and the settings of tokenizer_config.json.
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/base/utf8.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "engine/tokenizer/files/config_tokens.h"
#include "engine/tokenizer/files/tokenizer_config.h"
#include "engine/tokenizer/files/tokenizer_spec.h"
#include "engine/tokenizer/unicode/unicode_rules.h"
#include "engine/tokenizer/vocabulary.h"

namespace encoderd {
namespace {

constexpr char kVocabFile[] = "vocab.txt";

// Classes whose text goes through BERT's steps and template.
constexpr absl::string_view kClasses[] = {
    "BertTokenizer",           "BertTokenizerFast",  "DistilBertTokenizer",
    "DistilBertTokenizerFast", "ElectraTokenizer",   "ElectraTokenizerFast",
    "PreTrainedTokenizerFast", "PreTrainedTokenizer"};

absl::Status CheckSupported(const Folder& folder, const JsonFields& config) {
  const absl::StatusOr<tokenizer_config::ClassName> read =
      tokenizer_config::ReadClass(folder, config);
  if (!read.ok()) return read.status();
  absl::Status status =
      tokenizer_config::CheckClass(*read, kClasses, "BertTokenizer");
  if (!status.ok()) return status;
  const absl::StatusOr<bool> basic = config.Bool("do_basic_tokenize", true);
  if (!basic.ok()) return basic.status();
  if (!*basic) {
    return absl::UnimplementedError(absl::StrCat(
        tokenizer_config::kFile, ": do_basic_tokenize false is not supported"));
  }
  // Those of Japanese models.
  const std::pair<const char*, const char*> kinds[] = {
      {"word_tokenizer_type", "basic"},
      {"subword_tokenizer_type", "wordpiece"}};
  for (const auto& [key, known] : kinds) {
    const absl::StatusOr<std::string> kind = config.String(key, known);
    if (!kind.ok()) return kind.status();
    if (*kind != known) {
      return absl::UnimplementedError(absl::StrCat(tokenizer_config::kFile,
                                                   ": ", key, " ", Quote(*kind),
                                                   " is not supported"));
    }
  }
  const Json* never_split = config.Find("never_split");
  if (never_split != nullptr && !never_split->empty()) {
    return absl::UnimplementedError(absl::StrCat(
        tokenizer_config::kFile, ": never_split is not supported"));
  }
  return absl::OkStatus();
}

absl::string_view WithoutSpaceAtEnd(absl::string_view line) {
  if (utf8::FindInvalid(line).has_value()) return line;  // to be rejected
  while (!line.empty()) {
    const int64_t last =
        utf8::Previous(line, static_cast<int64_t>(line.size()));
    int length;
    if (!unicode::IsSpace(utf8::DecodeAt(line, last, &length))) break;
    line = line.substr(0, static_cast<size_t>(last));
  }
  return line;
}

absl::Status ReadLines(const Folder& folder, TokenizerSpec* out) {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(folder, kVocabFile, TokenizerSpec::kMaxFileBytes);
  if (!text.ok()) return text.status();
  for (const absl::string_view line :
       absl::StrSplit(absl::StripSuffix(*text, "\n"), '\n')) {
    out->vocabulary.emplace_back(WithoutSpaceAtEnd(line));
  }
  // Of lines with the same entry the last one counts, as in `tokenizers`.
  absl::flat_hash_set<absl::string_view> known;
  ReserveAll(out->vocabulary.size(), &known);
  std::vector<size_t> replaced;
  for (size_t id = out->vocabulary.size(); id-- > 0;)
    if (!known.insert(out->vocabulary[id]).second) replaced.push_back(id);
  for (const size_t id : replaced) out->vocabulary[id].clear();
  out->repeats_entries = !replaced.empty();
  return absl::OkStatus();
}

absl::Status ReadConfig(const Folder& folder, const JsonFields& config,
                        TokenizerSpec* out) {
  absl::Status status = CheckSupported(folder, config);
  if (!status.ok()) return status;
  BertNormalizerOptions bert;
  Take(config.Bool("do_lower_case", true), &bert.lowercase, &status);
  Take(config.Bool("strip_accents", bert.lowercase), &bert.strip_accents,
       &status);
  Take(config.Bool("tokenize_chinese_chars", true), &bert.handle_chinese_chars,
       &status);
  if (!status.ok()) return status;
  out->normalizer = {bert};
  out->pre_tokenizer = {BertSplit{}};

  constexpr NamedToken kTokens[] = {{"unk_token", "[UNK]", true},
                                    {"cls_token", "[CLS]", true},
                                    {"sep_token", "[SEP]", true},
                                    {"pad_token", "[PAD]", false},
                                    {"mask_token", "[MASK]", false}};
  const absl::StatusOr<std::vector<int32_t>> ids =
      AddNamedTokens(config, kTokens, kVocabFile, out);
  if (!ids.ok()) return ids.status();
  WordPieceOptions word_piece;
  word_piece.unk_token = out->vocabulary[(*ids)[0]];
  out->model = std::move(word_piece);
  out->post_processor.pieces = Template::Bert((*ids)[1], (*ids)[2]);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizerSpec> ReadVocabulary(const Folder& folder) {
  TokenizerSpec spec;
  absl::Status status = ReadLines(folder, &spec);
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
