#include "engine/tokenizer/files/tokenizer_config.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/io/file.h"
#include "engine/tokenizer/vocabulary.h"

namespace encoderd::tokenizer_config {

absl::StatusOr<Json> Read(const Folder& folder) {
  return ReadOptionalJsonObject(folder, kFile);
}

absl::StatusOr<ClassName> ReadClass(const Folder& folder,
                                    const JsonFields& config) {
  constexpr char kKey[] = "tokenizer_class";
  constexpr char kModelFile[] = "config.json";
  ClassName out;
  absl::Status status;
  Take(config.String(kKey, ""), &out.name, &status);
  const absl::StatusOr<Json> json = ReadOptionalJsonObject(folder, kModelFile);
  if (!json.ok()) return json.status();
  const JsonFields model(*json, kModelFile);
  Take(model.String("model_type", ""), &out.model_type, &status);
  if (out.name.empty()) {
    out.file = kModelFile;
    Take(model.String(kKey, ""), &out.name, &status);
  }
  if (!status.ok()) return status;
  return out;
}

absl::Status CheckClass(const ClassName& read,
                        absl::Span<const absl::string_view> classes,
                        absl::string_view family) {
  if (read.name.empty() || absl::c_linear_search(classes, read.name))
    return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      read.file, ": tokenizer_class ", Quote(read.name),
      " is not supported without tokenizer.json; supported: ", family));
}

absl::StatusOr<AddedToken> ReadToken(const Json& json, absl::string_view name,
                                     bool special) {
  AddedToken token;
  token.special = special;
  if (json.is_string()) {
    token.content = json.get<std::string>();
    return token;
  }
  if (!json.is_object()) {
    return absl::DataLossError(absl::StrCat(
        name, " is ", ShowJson(json), "; expected a string or an object"));
  }
  const JsonFields fields(json, name);
  absl::Status status;
  Take(fields.String("content"), &token.content, &status);
  Take(fields.Bool("special", special), &token.special, &status);
  token.special = special || token.special;
  token.normalized = !token.special;
  const std::pair<const char*, bool*> flags[] = {
      {"single_word", &token.single_word},
      {"lstrip", &token.lstrip},
      {"rstrip", &token.rstrip},
      {"normalized", &token.normalized}};
  for (const auto& [key, flag] : flags)
    Take(fields.Bool(key, *flag), flag, &status);
  if (!status.ok()) return status;
  return token;
}

absl::StatusOr<AddedToken> SpecialToken(const JsonFields& config,
                                        const std::string& key,
                                        const std::string& fallback) {
  const Json* json = config.Find(key);
  const std::string name = absl::StrCat(kFile, ": ", key);
  return json == nullptr ? ReadToken(fallback, name, true)
                         : ReadToken(*json, name, true);
}

absl::Status CheckCommon(const JsonFields& config, TokenizerRemarks* remarks) {
  constexpr char kSplit[] = "split_special_tokens";
  const absl::StatusOr<bool> split = config.Bool(kSplit, false);
  if (!split.ok()) return split.status();
  if (*split) {
    return absl::UnimplementedError(
        absl::StrCat(kFile, ": ", kSplit, " true is not supported"));
  }
  constexpr char kSide[] = "truncation_side";
  const absl::StatusOr<std::string> side = config.String(kSide, "right");
  if (!side.ok()) return side.status();
  if (*side == "left") {
    remarks->notes.push_back(
        absl::StrCat(kFile, ": ", kSide,
                     " is left: transformers cuts the start of long texts; a "
                     "request chooses that by TRUNCATE_START"));
  }
  return absl::OkStatus();
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
    absl::StatusOr<AddedToken> token = ReadToken(*entry, name, false);
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
