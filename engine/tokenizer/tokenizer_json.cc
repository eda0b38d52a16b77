// Reads tokenizer.json, the format of Hugging Face `tokenizers`:
//   { "truncation", "padding": ignored, with a note; "decoder": not needed;
//     "added_tokens": [{ "id", "content", "single_word", "lstrip", "rstrip",
//                        "normalized", "special" }],
//     "normalizer":     BertNormalizer or null,
//     "pre_tokenizer":  BertPreTokenizer,
//     "post_processor": TemplateProcessing, BertProcessing or null,
//     "model":          WordPiece with "vocab": { entry: id } }
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "engine/tokenizer/tokenizer_spec.h"

namespace encoderd {
namespace {

constexpr char kFile[] = "tokenizer.json";
constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max();

absl::Status Unsupported(absl::string_view part, absl::string_view found,
                         absl::string_view supported) {
  return absl::UnimplementedError(
      absl::StrCat(kFile, ": ", part, " ", Quote(found),
                   " is not supported; supported: ", supported));
}

absl::Status Bad(absl::string_view where, absl::string_view wanted) {
  return absl::DataLossError(
      absl::StrCat(kFile, ": ", where, " must be ", wanted));
}

// The "type" of a component.
absl::StatusOr<std::string> TypeOf(const Json& component,
                                   absl::string_view part) {
  if (!component.is_object()) return Bad(part, "an object");
  return JsonFields(component, absl::StrCat(kFile, ": ", part)).String("type");
}

absl::Status ReadBool(const JsonFields& fields, const char* key, bool* value) {
  absl::StatusOr<bool> read = fields.Bool(key);
  if (!read.ok()) return read.status();
  *value = *read;
  return absl::OkStatus();
}

absl::Status ReadNormalizer(const Json* json, NormalizerOptions* out) {
  if (json == nullptr) {
    *out = {false, false, false, false};
    return absl::OkStatus();
  }
  const absl::StatusOr<std::string> type = TypeOf(*json, "normalizer");
  if (!type.ok()) return type.status();
  if (*type != "BertNormalizer") {
    return Unsupported("normalizer", *type, "BertNormalizer");
  }
  const JsonFields fields(*json, absl::StrCat(kFile, ": normalizer"));
  absl::Status status = ReadBool(fields, "clean_text", &out->clean_text);
  if (status.ok()) {
    status =
        ReadBool(fields, "handle_chinese_chars", &out->handle_chinese_chars);
  }
  if (status.ok()) status = ReadBool(fields, "lowercase", &out->lowercase);
  if (!status.ok()) return status;
  const absl::StatusOr<bool> strip =
      fields.Bool("strip_accents", out->lowercase);
  if (!strip.ok()) return strip.status();
  out->strip_accents = *strip;
  return absl::OkStatus();
}

absl::Status CheckPreTokenizer(const Json* json) {
  if (json == nullptr) {
    return Unsupported("pre_tokenizer", "null", "BertPreTokenizer");
  }
  const absl::StatusOr<std::string> type = TypeOf(*json, "pre_tokenizer");
  if (!type.ok()) return type.status();
  if (*type == "BertPreTokenizer") return absl::OkStatus();
  return Unsupported("pre_tokenizer", *type, "BertPreTokenizer");
}

absl::Status ReadModel(const Json* json, TokenizerSpec* out) {
  if (json == nullptr) return Bad("model", "an object");
  const absl::StatusOr<std::string> type = TypeOf(*json, "model");
  if (!type.ok()) return type.status();
  if (*type != "WordPiece") return Unsupported("model", *type, "WordPiece");
  const JsonFields fields(*json, absl::StrCat(kFile, ": model"));
  absl::StatusOr<std::string> unk = fields.String("unk_token", "[UNK]");
  if (!unk.ok()) return unk.status();
  absl::StatusOr<std::string> prefix =
      fields.String("continuing_subword_prefix", "##");
  if (!prefix.ok()) return prefix.status();
  const absl::StatusOr<int64_t> max_chars =
      fields.Int("max_input_chars_per_word", 0, WordPiece::kMaxWordChars, 100);
  if (!max_chars.ok()) return max_chars.status();
  out->word_piece = {*std::move(unk), *std::move(prefix),
                     static_cast<int32_t>(*max_chars)};

  const Json* vocab = fields.Find("vocab");
  if (vocab == nullptr || !vocab->is_object()) {
    return Bad("model.vocab", "an object");
  }
  const auto size = static_cast<int64_t>(vocab->size());
  out->vocabulary.resize(vocab->size());
  std::vector<bool> seen(vocab->size());
  for (auto entry = vocab->begin(); entry != vocab->end(); ++entry) {
    const Json& value = entry.value();
    const bool in_range = value.is_number_unsigned() &&
                          value.get<uint64_t>() < static_cast<uint64_t>(size);
    const uint64_t id = in_range ? value.get<uint64_t>() : 0;
    if (!in_range || seen[id]) {
      return Bad(absl::StrCat("model.vocab[", Quote(entry.key()),
                              "] = ", ShowJson(value)),
                 absl::StrCat("an id of its own from 0 to ", size - 1));
    }
    seen[id] = true;
    out->vocabulary[id] = entry.key();
  }
  return absl::OkStatus();
}

// `vocab`: the model's, { entry: id }, checked.
absl::Status ReadAddedTokens(const Json* json, const Json& vocab,
                             TokenizerSpec* out) {
  if (json == nullptr) return absl::OkStatus();
  if (!json->is_array()) return Bad("added_tokens", "an array");
  // Where a token is part of the vocabulary, its id is that entry's; all others
  // follow in order.
  std::unordered_map<std::string, int64_t> further;
  auto next = static_cast<int64_t>(out->vocabulary.size());
  for (size_t i = 0; i < json->size(); ++i) {
    const std::string where = absl::StrCat("added_tokens[", i, "]");
    const Json& entry = (*json)[i];
    if (!entry.is_object()) return Bad(where, "an object");
    const JsonFields fields(entry, absl::StrCat(kFile, ": ", where));
    absl::StatusOr<std::string> content = fields.String("content");
    if (!content.ok()) return content.status();
    const absl::StatusOr<int64_t> id = fields.Int("id", 0, kMaxId);
    if (!id.ok()) return id.status();
    const auto entry_id = vocab.find(*content);
    int64_t expected;
    if (entry_id != vocab.end()) {
      expected = entry_id->get<int64_t>();
    } else {
      const auto [known, is_new] = further.try_emplace(*content, next);
      if (is_new) ++next;
      expected = known->second;
    }
    if (*id != expected) {
      return Bad(absl::StrCat(where, ".id = ", *id),
                 absl::StrCat(expected,
                              ", the token's own entry or the next free id"));
    }
    AddedToken token;
    token.content = *std::move(content);
    token.id = static_cast<int32_t>(*id);
    absl::Status status = ReadBool(fields, "single_word", &token.single_word);
    if (status.ok()) status = ReadBool(fields, "lstrip", &token.lstrip);
    if (status.ok()) status = ReadBool(fields, "rstrip", &token.rstrip);
    if (status.ok()) status = ReadBool(fields, "normalized", &token.normalized);
    if (status.ok()) status = ReadBool(fields, "special", &token.special);
    if (!status.ok()) return status;
    out->added_tokens.push_back(std::move(token));
  }
  return absl::OkStatus();
}

using Pieces = std::vector<TemplatePiece>;

// One side of a TemplateProcessing: [{"SpecialToken": {"id", "type_id"}} or
// {"Sequence": {"id": "A" or "B", "type_id"}}].
absl::Status ReadPieces(const JsonFields& processor, const char* key,
                        const Json& special_tokens, Pieces* out) {
  const std::string where = absl::StrCat("post_processor.", key);
  const Json* json = processor.Find(key);
  if (json == nullptr || !json->is_array()) return Bad(where, "an array");
  for (const Json& item : *json) {
    if (!item.is_object() || item.size() != 1 || !item.front().is_object()) {
      return Bad(where, "a list of {\"SpecialToken\"} and {\"Sequence\"}");
    }
    const std::string& kind = item.begin().key();
    const JsonFields fields(item.front(), absl::StrCat(kFile, ": ", where));
    const absl::StatusOr<std::string> id = fields.String("id");
    if (!id.ok()) return id.status();
    const absl::StatusOr<int64_t> segment = fields.Int("type_id", 0, 1);
    if (!segment.ok()) return segment.status();
    TemplatePiece piece;
    piece.segment = static_cast<int32_t>(*segment);
    if (kind == "Sequence" && (*id == "A" || *id == "B")) {
      piece.kind = *id == "A" ? TemplatePiece::kFirst : TemplatePiece::kSecond;
      out->push_back(piece);
      continue;
    }
    const auto token = special_tokens.find(*id);
    if (kind != "SpecialToken" || token == special_tokens.end() ||
        !token->is_object() || !token->contains("ids") ||
        !(*token)["ids"].is_array()) {
      return Bad(absl::StrCat(where, ": ", kind, " ", Quote(*id)),
                 "a sequence A or B or one of special_tokens, with ids");
    }
    for (const Json& special : (*token)["ids"]) {
      if (!special.is_number_unsigned() ||
          special.get<uint64_t>() > static_cast<uint64_t>(kMaxId)) {
        return Bad(absl::StrCat(where, ": id ", ShowJson(special)),
                   "a token id");
      }
      piece.id = special.get<int32_t>();
      out->push_back(piece);
      if (out->size() > Template::kMaxPieces) {
        return Bad(where,
                   absl::StrCat("at most ", Template::kMaxPieces, " pieces"));
      }
    }
  }
  return absl::OkStatus();
}

// BertProcessing: "cls": [token, id], "sep": [token, id].
absl::StatusOr<Template> ReadBertProcessing(const JsonFields& fields) {
  int32_t ids[2];
  const char* const keys[2] = {"cls", "sep"};
  for (int i = 0; i < 2; ++i) {
    const Json* json = fields.Find(keys[i]);
    if (json == nullptr || !json->is_array() || json->size() != 2 ||
        !(*json)[1].is_number_unsigned() ||
        (*json)[1].get<uint64_t>() > static_cast<uint64_t>(kMaxId)) {
      return Bad(absl::StrCat("post_processor.", keys[i]), "[token, id]");
    }
    ids[i] = (*json)[1].get<int32_t>();
  }
  return Template::Bert(ids[0], ids[1]);
}

absl::StatusOr<Template> ReadPostProcessor(const Json* json) {
  if (json == nullptr) return Template();
  const absl::StatusOr<std::string> type = TypeOf(*json, "post_processor");
  if (!type.ok()) return type.status();
  const JsonFields fields(*json, absl::StrCat(kFile, ": post_processor"));
  if (*type == "BertProcessing") return ReadBertProcessing(fields);
  if (*type != "TemplateProcessing") {
    return Unsupported("post_processor", *type,
                       "TemplateProcessing, BertProcessing");
  }
  const Json* special_tokens = fields.Find("special_tokens");
  if (special_tokens == nullptr || !special_tokens->is_object()) {
    return Bad("post_processor.special_tokens", "an object");
  }
  Pieces single, pair;
  absl::Status status = ReadPieces(fields, "single", *special_tokens, &single);
  if (status.ok()) {
    status = ReadPieces(fields, "pair", *special_tokens, &pair);
  }
  if (!status.ok()) return status;
  return Template(std::move(single), std::move(pair));
}

}  // namespace

absl::StatusOr<TokenizerSpec> ReadTokenizerJson(const std::string& folder) {
  JsonLimits limits;
  limits.max_bytes = TokenizerSpec::kMaxFileBytes;
  const absl::StatusOr<Json> json = ReadJsonObject(folder, kFile, limits);
  if (!json.ok()) return json.status();
  const JsonFields fields(*json, kFile);
  TokenizerSpec spec;
  absl::Status status = ReadModel(fields.Find("model"), &spec);
  if (status.ok()) {
    status = ReadNormalizer(fields.Find("normalizer"), &spec.normalizer);
  }
  if (status.ok()) status = CheckPreTokenizer(fields.Find("pre_tokenizer"));
  if (!status.ok()) return status;
  status = ReadAddedTokens(fields.Find("added_tokens"),
                           *fields.Find("model")->find("vocab"), &spec);
  if (!status.ok()) return status;
  absl::StatusOr<Template> post_processor =
      ReadPostProcessor(fields.Find("post_processor"));
  if (!post_processor.ok()) return post_processor.status();
  spec.post_processor = *std::move(post_processor);
  for (const char* key : {"truncation", "padding"}) {
    if (fields.Find(key) != nullptr) {
      spec.notes.push_back(absl::StrCat(
          kFile, ": \"", key, "\" is a leftover of training and is ignored"));
    }
  }
  return spec;
}

}  // namespace encoderd
