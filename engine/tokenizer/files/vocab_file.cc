// Reads vocab.txt, one entry per line, id by line number, and the settings of
// tokenizer_config.json.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "engine/tokenizer/files/config_tokens.h"
#include "engine/tokenizer/files/tokenizer_config.h"
#include "engine/tokenizer/files/tokenizer_spec.h"

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

absl::Status ReadLines(const Folder& folder, TokenizerSpec* out) {
  absl::StatusOr<std::string> text =
      ReadWholeFile(folder, kVocabFile, TokenizerSpec::kMaxFileBytes);
  if (!text.ok()) return text.status();
  if (text->back() != '\n') text->push_back('\n');
  for (size_t begin = 0; begin < text->size();) {
    const size_t line_end = text->find('\n', begin);
    size_t end = line_end;
    if (end > begin && (*text)[end - 1] == '\r') --end;
    out->vocabulary.push_back(text->substr(begin, end - begin));
    begin = line_end + 1;
  }
  return absl::OkStatus();
}

absl::Status ReadConfig(const Folder& folder, const JsonFields& config,
                        TokenizerSpec* out) {
  absl::Status status = CheckSupported(folder, config);
  if (!status.ok()) return status;
  const absl::StatusOr<bool> lower = config.Bool("do_lower_case", true);
  if (!lower.ok()) return lower.status();
  const absl::StatusOr<bool> strip = config.Bool("strip_accents", *lower);
  if (!strip.ok()) return strip.status();
  const absl::StatusOr<bool> cjk = config.Bool("tokenize_chinese_chars", true);
  if (!cjk.ok()) return cjk.status();
  out->normalizer = {BertNormalizerOptions{true, *cjk, *strip, *lower}};
  out->pre_tokenizer = {BertSplit{}};

  WordPieceOptions word_piece;
  int32_t cls = -1, sep = -1;
  for (const std::string name : {"unk", "cls", "sep", "pad", "mask"}) {
    std::string fallback = name;
    for (char& c : fallback) c = static_cast<char>(c - 'a' + 'A');
    absl::StatusOr<AddedToken> token = tokenizer_config::SpecialToken(
        config, absl::StrCat(name, "_token"), absl::StrCat("[", fallback, "]"));
    if (!token.ok()) return token.status();
    const auto found = std::find(out->vocabulary.begin(), out->vocabulary.end(),
                                 token->content);
    token->id = static_cast<int32_t>(found - out->vocabulary.begin());
    const bool known = found != out->vocabulary.end();
    if (!known && name != "pad" && name != "mask") {
      return absl::DataLossError(absl::StrCat(
          kVocabFile, " lacks the ", name, "_token ", Quote(token->content)));
    }
    if (name == "unk") word_piece.unk_token = token->content;
    if (name == "cls") cls = token->id;
    if (name == "sep") sep = token->id;
    const bool twice = std::any_of(
        out->added_tokens.begin(), out->added_tokens.end(),
        [&](const AddedToken& x) { return x.content == token->content; });
    if (known && !twice) out->added_tokens.push_back(*std::move(token));
  }
  out->model = std::move(word_piece);
  out->post_processor.pieces = Template::Bert(cls, sep);
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
