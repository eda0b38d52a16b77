#include "engine/tokenizer/files/tokenizer_config.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/io/file.h"
#include "engine/tokenizer/vocabulary.h"

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

absl::StatusOr<AddedToken> ReadToken(const Json& json, absl::string_view name) {
  AddedToken token;
  token.special = true;
  if (json.is_string()) {
    token.content = json.get<std::string>();
    return token;
  }
  if (!json.is_object()) {
    return absl::DataLossError(absl::StrCat(
        name, " is ", ShowJson(json), "; expected a string or an object"));
  }
  const JsonFields fields(json, name);
  absl::StatusOr<std::string> content = fields.String("content");
  if (!content.ok()) return content.status();
  token.content = *std::move(content);
  const std::pair<const char*, bool*> flags[] = {
      {"single_word", &token.single_word},
      {"lstrip", &token.lstrip},
      {"rstrip", &token.rstrip},
      {"normalized", &token.normalized}};
  for (const auto& [key, flag] : flags) {
    const absl::StatusOr<bool> read = fields.Bool(key, false);
    if (!read.ok()) return read.status();
    *flag = *read;
  }
  return token;
}

absl::StatusOr<AddedToken> SpecialToken(const JsonFields& config,
                                        const std::string& key,
                                        const std::string& fallback) {
  const Json* json = config.Find(key);
  if (json != nullptr && json->is_object())
    return ReadToken(*json, absl::StrCat(kFile, ": ", key));
  absl::StatusOr<std::string> content = config.String(key, fallback);
  if (!content.ok()) return content.status();
  AddedToken token;
  token.special = true;
  token.content = *std::move(content);
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
  return ReadDecoder(config, known, vocabulary_file,
                     "; save the tokenizer as tokenizer.json")
      .status();
}

absl::StatusOr<std::vector<AddedToken>> ReadDecoder(
    const JsonFields& config, const std::vector<AddedToken>& known,
    absl::string_view file, absl::string_view remedy) {
  constexpr char kKey[] = "added_tokens_decoder";
  std::vector<AddedToken> out;
  const Json* added = config.Find(kKey);
  if (added == nullptr) return out;
  if (!added->is_object()) return config.Bad(kKey, "expected an object");
  absl::flat_hash_set<absl::string_view> contents;
  ReserveAll(known.size(), &contents);
  for (const AddedToken& token : known) contents.insert(token.content);
  for (auto entry = added->begin(); entry != added->end(); ++entry) {
    const std::string name =
        absl::StrCat(kFile, ": ", kKey, "[", Quote(entry.key()), "]");
    absl::StatusOr<AddedToken> token = ReadToken(*entry, name);
    if (!token.ok()) return token.status();
    if (!contents.contains(token->content)) {
      return absl::UnimplementedError(
          absl::StrCat(name, " next to ", file, " is not supported", remedy));
    }
    out.push_back(*std::move(token));
  }
  return out;
}

}  // namespace encoderd::tokenizer_config
