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

absl::StatusOr<ClassName> ReadClass(const std::string& folder,
                                    const JsonFields& config) {
  constexpr char kKey[] = "tokenizer_class";
  constexpr char kModelFile[] = "config.json";
  ClassName out;
  absl::StatusOr<std::string> name = config.String(kKey, "");
  if (name.ok() && name->empty() && FileExists(folder, kModelFile)) {
    const absl::StatusOr<Json> json = ReadJsonObject(folder, kModelFile);
    if (!json.ok()) return json.status();
    out.file = kModelFile;
    name = JsonFields(*json, kModelFile).String(kKey, "");
  }
  if (!name.ok()) return name.status();
  out.name = *std::move(name);
  return out;
}

absl::Status CheckClass(const ClassName& read,
                        absl::Span<const absl::string_view> classes,
                        absl::string_view family) {
  if (read.name.empty() ||
      std::find(classes.begin(), classes.end(), read.name) != classes.end()) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(
      read.file, ": tokenizer_class ", Quote(read.name),
      " is not supported without tokenizer.json; supported: ", family));
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
  return CheckDecoder(config, known, vocabulary_file,
                      "; save the tokenizer as tokenizer.json");
}

absl::Status CheckDecoder(const JsonFields& config,
                          const std::vector<AddedToken>& known,
                          absl::string_view file, absl::string_view remedy) {
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
      return absl::UnimplementedError(
          absl::StrCat(kFile, ": added_tokens_decoder[", Quote(entry.key()),
                       "] next to ", file, " is not supported", remedy));
    }
  }
  return absl::OkStatus();
}

}  // namespace encoderd::tokenizer_config
