// Reads tokenizer.json, the format of Hugging Face `tokenizers`:
//   { "truncation", "padding": ignored, with a note; "decoder": not needed;
//     "added_tokens": [{ "id", "content", "single_word", "lstrip", "rstrip",
//                        "normalized", "special" }],
//     "normalizer", "pre_tokenizer", "post_processor", "model": json_parts.h }
#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "engine/io/json.h"
#include "engine/tokenizer/files/json_overrides.h"
#include "engine/tokenizer/files/json_parts.h"
#include "engine/tokenizer/files/tokenizer_spec.h"
#include "engine/tokenizer/wordpiece/bert_tokenizer.h"

namespace encoderd {
namespace json_parts {
namespace {

absl::Status ReadAddedTokens(const Json* json, TokenizerSpec* out) {
  if (json == nullptr) return absl::OkStatus();
  if (!json->is_array()) return Bad("added_tokens", "an array");
  const VocabularyIndex vocab = IndexVocabulary(out->vocabulary);
  // Where a token is part of the vocabulary, its id is that entry's; all others
  // follow in order.
  std::unordered_map<std::string, int64_t> further;
  auto next = static_cast<int64_t>(out->vocabulary.size());
  std::unordered_map<std::string, size_t> places;  // in out->added_tokens
  for (size_t i = 0; i < json->size(); ++i) {
    const std::string where = absl::StrCat("added_tokens[", i, "]");
    const Json& entry = (*json)[i];
    if (!entry.is_object()) return Bad(where, "an object");
    const JsonFields fields(entry, absl::StrCat(kFile, ": ", where));
    AddedToken token;
    absl::Status status;
    Take(fields.String("content"), &token.content, &status);
    Take(fields.Int("id", 0, kMaxId), &token.id, &status);
    if (!status.ok()) return status;
    const auto entry_id = vocab.find(token.content);
    int64_t expected;
    if (entry_id != vocab.end()) {
      expected = entry_id->second;
    } else {
      const auto [known, is_new] = further.try_emplace(token.content, next);
      if (is_new) ++next;
      expected = known->second;
    }
    // An entry that the vocabulary has twice may go by either id.
    const bool is_same_entry =
        token.id < static_cast<int64_t>(out->vocabulary.size()) &&
        out->vocabulary[token.id] == token.content;
    if (token.id != expected && !is_same_entry) {
      return Bad(absl::StrCat(where, ".id = ", token.id),
                 absl::StrCat(expected,
                              ", the token's own entry or the next free id"));
    }
    token.id = static_cast<int32_t>(expected);
    Take(fields.Bool("single_word"), &token.single_word, &status);
    Take(fields.Bool("lstrip"), &token.lstrip, &status);
    Take(fields.Bool("rstrip"), &token.rstrip, &status);
    Take(fields.Bool("normalized"), &token.normalized, &status);
    Take(fields.Bool("special"), &token.special, &status);
    if (!status.ok()) return status;
    // Of entries with the same content the last one counts.
    const auto [place, is_first] =
        places.try_emplace(token.content, out->added_tokens.size());
    if (is_first) out->added_tokens.emplace_back();
    out->added_tokens[place->second] = std::move(token);
  }
  return absl::OkStatus();
}

// Parts that are there, each by itself, but not with each other.
absl::Status CheckTogether(const TokenizerSpec& spec) {
  const auto is_byte_level = [](const PreTokenizerStep& step) {
    return std::holds_alternative<ByteLevelSplit>(step);
  };
  const auto& steps = spec.pre_tokenizer;
  const auto bytes = std::count_if(steps.begin(), steps.end(), is_byte_level);
  if (std::holds_alternative<BytePairOptions>(spec.model)) {
    if (bytes != 1 || !is_byte_level(steps.back())) {
      return Unsupported("model", "BPE without pre_tokenizer ByteLevel",
                         "BPE with ByteLevel, the last of a sequence");
    }
    return absl::OkStatus();
  }
  if (bytes > 0) {
    return Unsupported("pre_tokenizer", "ByteLevel without model BPE",
                       "ByteLevel with BPE");
  }
  if (std::holds_alternative<WordPieceOptions>(spec.model) &&
      !BertTokenizer::Fits(spec)) {
    return Unsupported("model",
                       "WordPiece without BertNormalizer (or none) and "
                       "BertPreTokenizer",
                       "WordPiece with them");
  }
  return absl::OkStatus();
}

void NoteLeftOver(absl::string_view key, TokenizerRemarks* remarks) {
  remarks->notes.push_back(absl::StrCat(
      kFile, ": \"", key, "\" is left over from training and is ignored"));
}

}  // namespace
}  // namespace json_parts

absl::StatusOr<TokenizerSpec> ReadTokenizerJson(const Folder& folder) {
  using namespace json_parts;  // NOLINT(google-build-using-namespace)
  JsonLimits limits;
  limits.max_bytes = TokenizerSpec::kMaxFileBytes;
  const absl::StatusOr<Json> json = ReadJsonObject(folder, kFile, limits);
  if (!json.ok()) return json.status();
  const JsonFields fields(*json, kFile);
  TokenizerSpec spec;
  absl::Status status = ReadModel(fields.Find("model"), &spec);
  if (status.ok()) status = ReadNormalizer(fields.Find("normalizer"), &spec);
  if (status.ok()) {
    status = ReadPreTokenizer(fields.Find("pre_tokenizer"), &spec);
  }
  if (status.ok()) status = CheckTogether(spec);
  if (status.ok()) status = ReadAddedTokens(fields.Find("added_tokens"), &spec);
  if (!status.ok()) return status;
  Take(ReadPostProcessor(fields.Find("post_processor")), &spec.post_processor,
       &status);
  if (!status.ok()) return status;
  const Json* const truncation = fields.Find("truncation");
  if (truncation != nullptr && truncation->is_object() &&
      truncation->value("direction", Json()) == "Left") {
    spec.remarks.notes.push_back(
        absl::StrCat(kFile,
                     ": its truncation cuts the start of long texts; a request "
                     "chooses that by TRUNCATE_START"));
  } else if (truncation != nullptr) {
    NoteLeftOver("truncation", &spec.remarks);
  }
  if (fields.Find("padding") != nullptr) NoteLeftOver("padding", &spec.remarks);
  status = OverrideByConfig(folder, &spec);
  if (!status.ok()) return status;
  return spec;
}

}  // namespace encoderd
