#include "engine/tokenizer/files/config_tokens.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/io/file.h"
#include "engine/tokenizer/files/tokenizer_config.h"
#include "engine/tokenizer/vocabulary.h"

namespace encoderd {
namespace {

constexpr char kMapFile[] = "special_tokens_map.json";
constexpr char kAddedFile[] = "added_tokens.json";

// Where a token of the spec is: contents point into the spec, which must not
// change meanwhile.
using ByContent = absl::flat_hash_map<absl::string_view, size_t>;

ByContent IndexAdded(const TokenizerSpec& spec) {
  ByContent index;
  ReserveAll(spec.added_tokens.size(), &index);
  for (size_t i = 0; i < spec.added_tokens.size(); ++i)
    index.emplace(spec.added_tokens[i].content, i);
  return index;
}

// "2, such as 'a'".
std::string Count(size_t count, absl::string_view first) {
  return absl::StrCat(count, ", such as ", Quote(first));
}

// Returns the contents of the tokens whose flags were others.
std::vector<absl::string_view> TakeFlags(const std::vector<AddedToken>& decoder,
                                         TokenizerSpec* spec) {
  const ByContent index = IndexAdded(*spec);
  std::vector<absl::string_view> changed;
  for (const AddedToken& token : decoder) {
    AddedToken& held = spec->added_tokens[index.at(token.content)];
    const std::pair<bool, bool*> flags[] = {
        {token.single_word, &held.single_word},
        {token.lstrip, &held.lstrip},
        {token.rstrip, &held.rstrip},
        {token.normalized, &held.normalized},
        {token.special, &held.special}};
    bool differs = false;
    for (const auto& [flag, to] : flags) {
      differs = differs || *to != flag;
      *to = flag;
    }
    if (differs) changed.push_back(token.content);
  }
  return changed;
}

constexpr absl::string_view kSpecialTokens[] = {
    "bos_token", "eos_token", "unk_token", "sep_token",
    "pad_token", "cls_token", "mask_token"};

// "image_token": transformers 5 takes each such key for a special token.
bool IsOtherToken(absl::string_view file, absl::string_view key,
                  const Json& value) {
  if (!absl::EndsWith(key, "_token") ||
      absl::c_linear_search(kSpecialTokens, key))
    return false;
  return value.is_string() ||
         (value.is_object() &&
          (file == kMapFile || value.value("__type", Json()) == "AddedToken"));
}

// An id, until there is one: of tokens that transformers takes in the order of
// their keys in the file, which is not kept here.
constexpr int32_t kInOrderOfKeys = -1;

// The special tokens that a file names, in transformers' order otherwise.
absl::StatusOr<std::vector<AddedToken>> ReadNamed(const JsonFields& fields) {
  std::vector<AddedToken> out;
  const auto read = [&](const Json& json, absl::string_view key,
                        int32_t id = 0) {
    absl::StatusOr<AddedToken> token = tokenizer_config::ReadToken(
        json, absl::StrCat(fields.name(), ": ", key), /*special=*/true);
    if (!token.ok()) return token.status();
    token->id = id;
    if (!token->content.empty()) out.push_back(*std::move(token));
    return absl::OkStatus();
  };
  for (const absl::string_view key : kSpecialTokens) {
    const Json* const token = fields.Find(key);
    if (token == nullptr) continue;
    const absl::Status status = read(*token, key);
    if (!status.ok()) return status;
  }
  for (const auto& member : fields.object().items()) {
    if (!IsOtherToken(fields.name(), member.key(), member.value())) continue;
    const absl::Status status =
        read(member.value(), member.key(), kInOrderOfKeys);
    if (!status.ok()) return status;
  }
  for (const bool named : {true, false}) {  // an object gives each a name
    for (const char* key : {"additional_special_tokens", "extra_special_tokens",
                            "model_specific_special_tokens"}) {
      const Json* const tokens = fields.Find(key);
      if (tokens == nullptr) continue;
      if (!tokens->is_structured())
        return fields.Bad(key, "expected an array or an object");
      if (tokens->is_object() != named) continue;
      for (const auto& token : tokens->items()) {
        const absl::Status status =
            read(token.value(), absl::StrCat(key, "[", token.key(), "]"),
                 named ? kInOrderOfKeys : 0);
        if (!status.ok()) return status;
      }
    }
  }
  return out;
}

absl::Status CheckAddedFile(const Folder& folder, const TokenizerSpec& spec) {
  const absl::StatusOr<Json> json = ReadOptionalJsonObject(folder, kAddedFile);
  if (!json.ok()) return json.status();
  const ByContent index = IndexAdded(spec);
  for (const auto& member : json->items()) {
    if (index.contains(member.key())) continue;
    return absl::UnimplementedError(
        absl::StrCat(kAddedFile, ": the token ", Quote(member.key()),
                     " next to tokenizer.json is not supported; save the "
                     "tokenizer again"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddSpecialTokens(const JsonFields& fields, TokenizerSpec* spec) {
  absl::StatusOr<std::vector<AddedToken>> named = ReadNamed(fields);
  if (!named.ok()) return named.status();
  absl::flat_hash_set<std::string> known;
  ReserveAll(spec->added_tokens.size() + named->size(), &known);
  auto next = static_cast<int32_t>(spec->vocabulary.size());
  for (const AddedToken& token : spec->added_tokens) {
    known.insert(token.content);
    next = std::max(next, token.id + 1);
  }
  std::vector<AddedToken> added;
  for (AddedToken& token : *named)
    if (known.insert(token.content).second) added.push_back(std::move(token));
  if (added.empty()) return absl::OkStatus();
  const VocabularyIndex vocabulary = IndexVocabulary(spec->vocabulary);
  const AddedToken* by_key = nullptr;  // and without an entry
  for (AddedToken& token : added) {
    const auto entry = vocabulary.find(token.content);
    if (entry == vocabulary.end() && spec->repeats_entries) {
      return absl::UnimplementedError(absl::StrCat(
          fields.name(), ": the vocabulary lacks the token ",
          Quote(token.content),
          ", whose id would depend on repeated lines of vocab.txt, which is "
          "not supported; save the tokenizer again"));
    }
    if (entry == vocabulary.end() && token.id == kInOrderOfKeys) {
      if (by_key != nullptr) {
        return absl::UnimplementedError(absl::StrCat(
            fields.name(), ": the vocabulary lacks the tokens ",
            Quote(by_key->content), " and ", Quote(token.content),
            ", whose ids the order of their keys would give, which is not "
            "supported; save the tokenizer again"));
      }
      by_key = &token;
    }
    token.id = entry != vocabulary.end() ? entry->second : next++;
  }
  spec->remarks.notes.push_back(
      absl::StrCat(fields.name(),
                   ": texts are searched for its special tokens, as in "
                   "transformers: ",
                   Count(added.size(), added.front().content)));
  spec->added_tokens.insert(spec->added_tokens.end(),
                            std::make_move_iterator(added.begin()),
                            std::make_move_iterator(added.end()));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> AddNamedTokens(
    const JsonFields& config, absl::Span<const NamedToken> tokens,
    absl::string_view vocabulary_file, TokenizerSpec* spec) {
  std::vector<int32_t> ids;
  for (const NamedToken& named : tokens) {
    absl::StatusOr<AddedToken> token =
        tokenizer_config::SpecialToken(config, named.key, named.fallback);
    if (!token.ok()) return token.status();
    const auto found = absl::c_find(spec->vocabulary, token->content);
    if (found == spec->vocabulary.end()) {
      if (named.needed) {
        return absl::DataLossError(absl::StrCat(vocabulary_file, " lacks the ",
                                                named.key, " ",
                                                Quote(token->content)));
      }
      ids.push_back(-1);
      continue;
    }
    token->id = static_cast<int32_t>(found - spec->vocabulary.begin());
    ids.push_back(token->id);
    const bool twice = absl::c_any_of(
        spec->added_tokens,
        [&](const AddedToken& x) { return x.content == token->content; });
    if (!twice) spec->added_tokens.push_back(*std::move(token));
  }
  return ids;
}

absl::Status ReadTokenizerConfig(
    const Folder& folder, absl::string_view vocabulary_file,
    absl::FunctionRef<absl::Status(const JsonFields& config)> read_config,
    TokenizerSpec* spec) {
  const absl::StatusOr<Json> json = tokenizer_config::Read(folder);
  if (!json.ok()) return json.status();
  const JsonFields config(*json, tokenizer_config::kFile);
  absl::Status status = tokenizer_config::CheckCommon(config, &spec->remarks);
  if (status.ok()) status = read_config(config);
  if (!status.ok()) return status;
  const absl::StatusOr<bool> added = FileExists(folder, kAddedFile);
  if (!added.ok()) return added.status();
  if (*added) {
    return absl::UnimplementedError(
        absl::StrCat(kAddedFile, " next to ", vocabulary_file,
                     " is not supported; save the tokenizer as "
                     "tokenizer.json"));
  }
  const absl::StatusOr<std::vector<AddedToken>> decoder =
      tokenizer_config::ReadDecoder(config, spec->added_tokens, vocabulary_file,
                                    "; save the tokenizer as tokenizer.json");
  if (!decoder.ok()) return decoder.status();
  TakeFlags(*decoder, spec);
  return AddSpecialTokens(config, spec);
}

absl::Status AddConfigTokens(const Folder& folder, const JsonFields& config,
                             TokenizerSpec* spec) {
  const absl::StatusOr<std::vector<AddedToken>> decoder =
      tokenizer_config::ReadDecoder(config, spec->added_tokens,
                                    "tokenizer.json",
                                    "; save the tokenizer again");
  if (!decoder.ok()) return decoder.status();
  const std::vector<absl::string_view> changed = TakeFlags(*decoder, spec);
  if (!changed.empty()) {
    spec->remarks.notes.push_back(absl::StrCat(
        tokenizer_config::kFile,
        ": its flags of tokens replace those of tokenizer.json, as in "
        "transformers: ",
        Count(changed.size(), changed.front())));
  }
  absl::Status status = AddSpecialTokens(config, spec);
  if (!status.ok() || config.Find("added_tokens_decoder") != nullptr)
    return status;
  status = CheckAddedFile(folder, *spec);
  if (!status.ok()) return status;
  const absl::StatusOr<Json> json = ReadOptionalJsonObject(folder, kMapFile);
  if (!json.ok()) return json.status();
  return AddSpecialTokens(JsonFields(*json, kMapFile), spec);
}

}  // namespace encoderd
