#include "engine/tokenizer/files/tokenizer_config.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/io/file.h"

namespace encoderd::tokenizer_config {

absl::StatusOr<Json> Read(const std::string& folder) {
  if (!FileExists(folder, kFile)) return Json::object();
  return ReadJsonObject(folder, kFile);
}

absl::Status CheckClass(const JsonFields& config,
                        absl::Span<const absl::string_view> classes,
                        absl::string_view family) {
  if (config.Find("tokenizer_class") == nullptr) return absl::OkStatus();
  const absl::StatusOr<std::string> name = config.String("tokenizer_class");
  if (!name.ok()) return name.status();
  if (std::find(classes.begin(), classes.end(), *name) == classes.end()) {
    return absl::UnimplementedError(absl::StrCat(
        kFile, ": tokenizer_class ", Quote(*name),
        " is not supported without tokenizer.json; supported: ", family));
  }
  return absl::OkStatus();
}

absl::StatusOr<AddedToken> SpecialToken(const JsonFields& config,
                                        const std::string& key,
                                        const std::string& fallback) {
  AddedToken token;
  token.special = true;
  const Json* json = config.Find(key);
  if (json == nullptr || !json->is_object()) {
    absl::StatusOr<std::string> content = config.String(key, fallback);
    if (!content.ok()) return content.status();
    token.content = *std::move(content);
    return token;
  }
  const JsonFields fields(*json, absl::StrCat(kFile, ": ", key));
  absl::StatusOr<std::string> content = fields.String("content");
  if (!content.ok()) return content.status();
  token.content = *std::move(content);
  const std::pair<const char*, bool*> flags[] = {
      {"single_word", &token.single_word},
      {"lstrip", &token.lstrip},
      {"rstrip", &token.rstrip},
      {"normalized", &token.normalized}};
  for (const auto& [name, flag] : flags) {
    const absl::StatusOr<bool> read = fields.Bool(name, false);
    if (!read.ok()) return read.status();
    *flag = *read;
  }
  return token;
}

absl::Status CheckAddedTokens(const std::string& folder,
                              const JsonFields& config,
                              const std::vector<AddedToken>& known,
                              absl::string_view vocabulary_file) {
  if (FileExists(folder, "added_tokens.json")) {
    return absl::UnimplementedError(
        absl::StrCat("added_tokens.json next to ", vocabulary_file,
                     " is not supported; save the tokenizer as "
                     "tokenizer.json"));
  }
  const Json* added = config.Find("added_tokens_decoder");
  if (added == nullptr) return absl::OkStatus();
  if (!added->is_object()) {
    return config.Bad("added_tokens_decoder", "expected an object");
  }
  for (auto entry = added->begin(); entry != added->end(); ++entry) {
    const bool is_known =
        entry->is_object() &&
        std::any_of(known.begin(), known.end(), [&](const AddedToken& token) {
          const auto content = entry->find("content");
          return content != entry->end() && content->is_string() &&
                 *content == token.content;
        });
    if (!is_known) {
      return absl::UnimplementedError(absl::StrCat(
          kFile, ": added_tokens_decoder[", Quote(entry.key()), "] next to ",
          vocabulary_file,
          " is not supported; save the tokenizer as tokenizer.json"));
    }
  }
  return absl::OkStatus();
}

}  // namespace encoderd::tokenizer_config
