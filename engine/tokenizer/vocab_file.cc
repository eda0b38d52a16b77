// Reads vocab.txt, one entry a line, id by line number, and what
// tokenizer_config.json says beside it.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "engine/tokenizer/tokenizer_spec.h"

namespace encoderd {
namespace {

constexpr char kVocabFile[] = "vocab.txt";
constexpr char kConfigFile[] = "tokenizer_config.json";

// Classes whose text goes through BERT's steps and template.
constexpr std::array kClasses = {
    "BertTokenizer",           "BertTokenizerFast",  "DistilBertTokenizer",
    "DistilBertTokenizerFast", "ElectraTokenizer",   "ElectraTokenizerFast",
    "PreTrainedTokenizerFast", "PreTrainedTokenizer"};

absl::Status CheckSupported(const JsonFields& config) {
  const absl::StatusOr<std::string> name =
      config.String("tokenizer_class", "BertTokenizer");
  if (!name.ok()) return name.status();
  if (std::find(kClasses.begin(), kClasses.end(), *name) == kClasses.end()) {
    return absl::UnimplementedError(absl::StrCat(
        kConfigFile, ": tokenizer_class ", Quote(*name),
        " is not supported without tokenizer.json; supported: BertTokenizer"));
  }
  const absl::StatusOr<bool> basic = config.Bool("do_basic_tokenize", true);
  if (!basic.ok()) return basic.status();
  if (!*basic) {
    return absl::UnimplementedError(absl::StrCat(
        kConfigFile, ": do_basic_tokenize false is not supported"));
  }
  const Json* never_split = config.Find("never_split");
  if (never_split != nullptr && !never_split->empty()) {
    return absl::UnimplementedError(
        absl::StrCat(kConfigFile, ": never_split is not supported"));
  }
  return absl::OkStatus();
}

// A special token's text: "[CLS]", or {"content": "[CLS]", ...}.
absl::StatusOr<std::string> TokenName(const JsonFields& config,
                                      const std::string& key,
                                      const std::string& fallback) {
  const Json* json = config.Find(key);
  if (json != nullptr && json->is_object()) {
    return JsonFields(*json, absl::StrCat(kConfigFile, ": ", key))
        .String("content");
  }
  return config.String(key, fallback);
}

absl::Status ReadLines(const std::string& folder, TokenizerSpec* out) {
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

absl::Status ReadConfig(const JsonFields& config, TokenizerSpec* out) {
  absl::Status status = CheckSupported(config);
  if (!status.ok()) return status;
  const absl::StatusOr<bool> lower = config.Bool("do_lower_case", true);
  if (!lower.ok()) return lower.status();
  const absl::StatusOr<bool> strip = config.Bool("strip_accents", *lower);
  if (!strip.ok()) return strip.status();
  const absl::StatusOr<bool> cjk = config.Bool("tokenize_chinese_chars", true);
  if (!cjk.ok()) return cjk.status();
  out->normalizer = {true, *cjk, *strip, *lower};

  int32_t cls = -1, sep = -1;
  for (const std::string name : {"unk", "cls", "sep", "pad", "mask"}) {
    std::string fallback = name;
    for (char& c : fallback) c = static_cast<char>(c - 'a' + 'A');
    absl::StatusOr<std::string> token = TokenName(
        config, absl::StrCat(name, "_token"), absl::StrCat("[", fallback, "]"));
    if (!token.ok()) return token.status();
    const auto found =
        std::find(out->vocabulary.begin(), out->vocabulary.end(), *token);
    const auto id = static_cast<int32_t>(found - out->vocabulary.begin());
    const bool known = found != out->vocabulary.end();
    if (!known && name != "pad" && name != "mask") {
      return absl::DataLossError(absl::StrCat(kVocabFile, " lacks the ", name,
                                              "_token ", Quote(*token)));
    }
    if (name == "unk") out->word_piece.unk_token = *token;
    if (name == "cls") cls = id;
    if (name == "sep") sep = id;
    const bool twice = std::any_of(
        out->added_tokens.begin(), out->added_tokens.end(),
        [&](const AddedToken& other) { return other.content == *token; });
    if (known && !twice) {
      out->added_tokens.push_back({*std::move(token), id});
      out->added_tokens.back().special = true;
    }
  }
  out->post_processor = Template::Bert(cls, sep);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizerSpec> ReadVocabulary(const std::string& folder) {
  TokenizerSpec spec;
  absl::Status status = ReadLines(folder, &spec);
  if (!status.ok()) return status;
  if (FileExists(folder, "added_tokens.json")) {
    return absl::UnimplementedError(
        "added_tokens.json beside vocab.txt is not supported; save the "
        "tokenizer as tokenizer.json");
  }
  Json config = Json::object();
  if (FileExists(folder, kConfigFile)) {
    absl::StatusOr<Json> read = ReadJsonObject(folder, kConfigFile);
    if (!read.ok()) return read.status();
    config = *std::move(read);
  }
  const JsonFields fields(config, kConfigFile);
  const Json* added = fields.Find("added_tokens_decoder");
  status = ReadConfig(fields, &spec);
  if (!status.ok()) return status;
  if (added == nullptr) return spec;
  if (!added->is_object()) {
    return fields.Bad("added_tokens_decoder", "want an object");
  }
  // Only what ReadConfig knows already may be listed; a further token would
  // change ids silently.
  for (auto entry = added->begin(); entry != added->end(); ++entry) {
    const bool known =
        entry->is_object() &&
        std::any_of(spec.added_tokens.begin(), spec.added_tokens.end(),
                    [&](const AddedToken& token) {
                      const auto content = entry->find("content");
                      return content != entry->end() && content->is_string() &&
                             *content == token.content;
                    });
    if (!known) {
      return absl::UnimplementedError(absl::StrCat(
          kConfigFile, ": added_tokens_decoder[", Quote(entry.key()),
          "] beside vocab.txt is not supported; save the tokenizer as "
          "tokenizer.json"));
    }
  }
  return spec;
}

}  // namespace encoderd
