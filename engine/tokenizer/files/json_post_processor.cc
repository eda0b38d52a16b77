// Reads "post_processor" of tokenizer.json:
//   TemplateProcessing  "single", "pair", "special_tokens"
//   BertProcessing      "cls": [token, id], "sep": [token, id]
//   RobertaProcessing   the same, "trim_offsets", "add_prefix_space"
//   ByteLevel           "trim_offsets", "add_prefix_space"
//   Sequence            "processors": ByteLevel and one of the others
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/io/file.h"
#include "engine/tokenizer/files/json_parts.h"

namespace encoderd::json_parts {
namespace {

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
    TemplatePiece piece;
    std::string id;
    absl::Status status;
    Take(fields.String("id"), &id, &status);
    Take(fields.Int("type_id", 0, 1), &piece.segment, &status);
    if (!status.ok()) return status;
    if (kind == "Sequence" && (id == "A" || id == "B")) {
      piece.kind = id == "A" ? TemplatePiece::kFirst : TemplatePiece::kSecond;
      out->push_back(piece);
      continue;
    }
    const auto token = special_tokens.find(id);
    if (kind != "SpecialToken" || token == special_tokens.end() ||
        !token->is_object() || !token->contains("ids") ||
        !(*token)["ids"].is_array()) {
      return Bad(absl::StrCat(where, ": ", kind, " ", Quote(id)),
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

// "cls": [token, id], "sep": [token, id].
absl::Status ReadEnds(const JsonFields& fields, int32_t* cls, int32_t* sep) {
  const std::pair<const char*, int32_t*> ends[] = {{"cls", cls}, {"sep", sep}};
  for (const auto& [key, id] : ends) {
    const Json* json = fields.Find(key);
    if (json == nullptr || !json->is_array() || json->size() != 2 ||
        !(*json)[1].is_number_unsigned() ||
        (*json)[1].get<uint64_t>() > static_cast<uint64_t>(kMaxId)) {
      return Bad(absl::StrCat("post_processor.", key), "[token, id]");
    }
    *id = (*json)[1].get<int32_t>();
  }
  return absl::OkStatus();
}

absl::StatusOr<Template> ReadTemplate(const JsonFields& fields) {
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

absl::Status ReadTrim(const JsonFields& fields, PostProcessor* out) {
  absl::Status status;
  Take(fields.Bool("trim_offsets"), &out->trim_offsets, &status);
  Take(fields.Bool("add_prefix_space"), &out->add_prefix_space, &status);
  return status;
}

// How far a sequence has come: offsets are trimmed before the template.
struct Progress {
  PostProcessor result;
  bool has_template = false;
  bool has_trim = false;
};

absl::Status ReadProcessor(const Json& json, Progress* out) {
  const absl::StatusOr<std::string> type = TypeOf(json, "post_processor");
  if (!type.ok()) return type.status();
  const JsonFields fields(json, absl::StrCat(kFile, ": post_processor"));
  if (*type == "Sequence") {
    const auto steps = ReadSequence(json, "processors", "post_processor");
    if (!steps.ok()) return steps.status();
    for (const Json* step : *steps) {
      absl::Status status = ReadProcessor(*step, out);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  const bool trims = *type == "ByteLevel" || *type == "RobertaProcessing";
  if (out->has_template || (trims && out->has_trim)) {
    return Unsupported(
        "post_processor", absl::StrCat(*type, " after another"),
        "ByteLevel, then one of TemplateProcessing and BertProcessing");
  }
  if (trims) {
    absl::Status status = ReadTrim(fields, &out->result);
    if (!status.ok() || *type == "ByteLevel") {
      out->has_trim = true;
      return status;
    }
  }
  out->has_template = true;
  if (*type == "TemplateProcessing") {
    absl::Status status;
    Take(ReadTemplate(fields), &out->result.pieces, &status);
    return status;
  }
  if (*type != "BertProcessing" && *type != "RobertaProcessing") {
    return Unsupported("post_processor", *type,
                       "TemplateProcessing, BertProcessing, "
                       "RobertaProcessing, ByteLevel, Sequence");
  }
  int32_t cls = 0, sep = 0;
  absl::Status status = ReadEnds(fields, &cls, &sep);
  if (!status.ok()) return status;
  out->result.pieces = *type == "BertProcessing" ? Template::Bert(cls, sep)
                                                 : Template::Roberta(cls, sep);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PostProcessor> ReadPostProcessor(const Json* json) {
  Progress progress;
  if (json == nullptr) return progress.result;
  absl::Status status = ReadProcessor(*json, &progress);
  if (!status.ok()) return status;
  return progress.result;
}

}  // namespace encoderd::json_parts
