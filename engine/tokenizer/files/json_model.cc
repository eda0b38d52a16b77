// Reads "model" of tokenizer.json:
//   WordPiece: "vocab": { entry: id }, "unk_token",
//   "continuing_subword_prefix",
//              "max_input_chars_per_word"
//   BPE:       "vocab": { entry: id }, "merges": ["a b"] or [["a", "b"]],
//              "unk_token", "fuse_unk", "ignore_merges"
//   Unigram:   "vocab": [[entry, score]], "unk_id", "byte_fallback"
// Old files (GPT-2's is one) do not say which it is; the keys do.
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/io/file.h"
#include "engine/tokenizer/files/json_parts.h"

namespace encoderd::json_parts {
namespace {

constexpr char kWhere[] = "tokenizer.json: model";

absl::Status ReadVocab(const JsonFields& fields,
                       std::vector<std::string>* vocabulary) {
  const Json* vocab = fields.Find("vocab");
  if (vocab == nullptr) return Bad("model.vocab", "an object");
  return ReadEntries(*vocab, absl::StrCat(kFile, ": model.vocab"), vocabulary);
}

absl::Status ReadWordPiece(const JsonFields& fields, TokenizerSpec* out) {
  WordPieceOptions options;
  absl::Status status;
  Take(fields.String("unk_token", "[UNK]"), &options.unk_token, &status);
  Take(fields.String("continuing_subword_prefix", "##"),
       &options.continuing_prefix, &status);
  Take(fields.Int("max_input_chars_per_word", 0, WordPiece::kMaxWordChars, 100),
       &options.max_word_chars, &status);
  if (!status.ok()) return status;
  out->model = std::move(options);
  return ReadVocab(fields, &out->vocabulary);
}

// What would change ids and is not there: dropout, pieces of characters.
absl::Status CheckBytePair(const JsonFields& fields) {
  const absl::StatusOr<double> dropout = fields.Number("dropout", 0, 1, 0);
  if (!dropout.ok()) return dropout.status();
  if (*dropout != 0) {
    return Unsupported("model.dropout", absl::StrCat(*dropout), "null, 0");
  }
  const absl::StatusOr<bool> fallback = fields.Bool("byte_fallback", false);
  if (!fallback.ok()) return fallback.status();
  if (*fallback) return Unsupported("model.byte_fallback", "true", "false");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const absl::StatusOr<std::string> affix = fields.String(key, "");
    if (!affix.ok()) return affix.status();
    if (!affix->empty()) {
      return Unsupported(absl::StrCat("model.", key), *affix, "null, ''");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadBytePair(const JsonFields& fields, TokenizerSpec* out) {
  absl::Status status = CheckBytePair(fields);
  if (status.ok()) status = ReadVocab(fields, &out->vocabulary);
  if (!status.ok()) return status;
  BytePairOptions options;
  if (fields.Find("unk_token") != nullptr)
    Take(fields.String("unk_token"), &options.unk_token, &status);
  Take(fields.Bool("fuse_unk", false), &options.fuse_unk, &status);
  Take(fields.Bool("ignore_merges", false), &options.ignore_merges, &status);
  if (!status.ok()) return status;

  const Json* merges = fields.Find("merges");
  if (merges == nullptr || !merges->is_array()) {
    return Bad("model.merges", "an array");
  }
  if (static_cast<int64_t>(merges->size()) > BytePair::kMaxMerges) {
    return Bad("model.merges",
               absl::StrCat("an array of at most ", BytePair::kMaxMerges,
                            ", not ", merges->size()));
  }
  const VocabularyIndex index = IndexVocabulary(out->vocabulary);
  options.merges.reserve(merges->size());
  for (size_t i = 0; i < merges->size(); ++i) {
    const Json& merge = (*merges)[i];
    const std::string where = absl::StrCat(kFile, ": model.merges[", i, "]");
    if (merge.is_string()) {
      status =
          AddMerge(merge.get_ref<const std::string&>(), where, index, &options);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      status = AddMerge(merge[0].get_ref<const std::string&>(),
                        merge[1].get_ref<const std::string&>(), where, index,
                        &options);
    } else {
      status = Bad(absl::StrCat("model.merges[", i, "] = ", ShowJson(merge)),
                   "\"a b\" or [\"a\", \"b\"]");
    }
    if (!status.ok()) return status;
  }
  out->model = std::move(options);
  return absl::OkStatus();
}

// A score as the reference reads it: its digits as a whole number, times or
// divided by a power of ten, which is not always the nearest double. Sums of
// scores that are equal but for the last bit decide how a word is cut.
double ScoreOfReference(double score) {
  char text[32];
  const std::to_chars_result end =
      std::to_chars(text, text + sizeof(text), std::abs(score),
                    std::chars_format::scientific);
  uint64_t digits = 0;
  int exponent = 0;
  bool in_fraction = false;
  for (const char* p = text; p < end.ptr; ++p) {
    if (*p == '.') {
      in_fraction = true;
    } else if (*p == 'e') {
      const char* const sign = p + 1;
      int power = 0;
      std::from_chars(*sign == '+' ? sign + 1 : sign, end.ptr, power);
      exponent += power;
      break;
    } else {
      digits = digits * 10 + static_cast<uint64_t>(*p - '0');
      if (in_fraction) --exponent;
    }
  }
  // Beyond the table of powers of a double nothing real is found.
  if (std::abs(exponent) > 308) return score;
  double power = 1;
  const std::string one = absl::StrCat("1e", std::abs(exponent));
  if (!absl::SimpleAtod(one, &power)) return score;
  const auto whole = static_cast<double>(digits);
  const double value = exponent < 0 ? whole / power : whole * power;
  return std::signbit(score) ? -value : value;
}

absl::Status ReadUnigram(const JsonFields& fields, TokenizerSpec* out) {
  const Json* vocab = fields.Find("vocab");
  if (vocab == nullptr || !vocab->is_array()) {
    return Bad("model.vocab", "an array");
  }
  if (static_cast<int64_t>(vocab->size()) > Unigram::kMaxEntries) {
    return Bad("model.vocab",
               absl::StrCat("an array of at most ", Unigram::kMaxEntries,
                            ", not ", vocab->size()));
  }
  UnigramOptions options;
  for (size_t id = 0; id < vocab->size(); ++id) {
    const Json& entry = (*vocab)[id];
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() ||
        !entry[1].is_number()) {
      return Bad(absl::StrCat("model.vocab[", id, "] = ", ShowJson(entry)),
                 "[entry, score]");
    }
    out->vocabulary.push_back(entry[0].get<std::string>());
    options.scores.push_back(ScoreOfReference(entry[1].get<double>()));
  }
  if (fields.Find("unk_id") == nullptr) {
    return Unsupported("model.unk_id", "null", "the id of the unknown token");
  }
  absl::Status status;
  Take(fields.Int("unk_id", 0, static_cast<int64_t>(options.scores.size()) - 1),
       &options.unk_id, &status);
  Take(fields.Bool("byte_fallback", false), &options.byte_fallback, &status);
  if (!status.ok()) return status;
  out->model = std::move(options);
  return absl::OkStatus();
}

// "type" of a model that does not say it, as the reference finds it out; where
// nothing tells, the error of a type that is missing.
absl::StatusOr<std::string> TypeByKeys(const JsonFields& fields) {
  const auto has = [&](const char* key) { return fields.Find(key) != nullptr; };
  const bool list = has("vocab") && fields.Find("vocab")->is_array();
  if (list) return "Unigram";
  if (has("vocab") && has("merges")) return "BPE";
  if (has("vocab") && has("unk_token") && has("continuing_subword_prefix") &&
      has("max_input_chars_per_word")) {
    return "WordPiece";
  }
  return fields.String("type");
}

}  // namespace

absl::Status ReadEntries(const Json& json, absl::string_view name,
                         std::vector<std::string>* vocabulary) {
  if (!json.is_object()) {
    return absl::DataLossError(absl::StrCat(name, " must be an object"));
  }
  const auto size = static_cast<int64_t>(json.size());
  vocabulary->resize(json.size());
  std::vector<bool> seen(json.size());
  for (auto entry = json.begin(); entry != json.end(); ++entry) {
    const Json& value = entry.value();
    const bool in_range = value.is_number_unsigned() &&
                          value.get<uint64_t>() < static_cast<uint64_t>(size);
    const uint64_t id = in_range ? value.get<uint64_t>() : 0;
    if (!in_range || seen[id]) {
      return absl::DataLossError(
          absl::StrCat(name, "[", Quote(entry.key()), "] = ", ShowJson(value),
                       " must be a unique id from 0 to ", size - 1));
    }
    seen[id] = true;
    (*vocabulary)[id] = entry.key();
  }
  return absl::OkStatus();
}

absl::Status AddMerge(absl::string_view left, absl::string_view right,
                      absl::string_view where, const VocabularyIndex& index,
                      BytePairOptions* out) {
  const std::string result = absl::StrCat(left, right);
  int32_t ids[3];
  const absl::string_view entries[3] = {left, right, result};
  for (int i = 0; i < 3; ++i) {
    const auto found = index.find(entries[i]);
    if (found == index.end()) {
      return absl::DataLossError(
          absl::StrCat(where, " ", i < 2 ? "names " : "makes ",
                       Quote(entries[i]), ", which the vocabulary lacks"));
    }
    ids[i] = found->second;
  }
  out->merges.push_back({ids[0], ids[1], ids[2]});
  return absl::OkStatus();
}

absl::Status AddMerge(absl::string_view pair, absl::string_view where,
                      const VocabularyIndex& index, BytePairOptions* out) {
  if (pair.substr(0, 8) == "#version") return absl::OkStatus();
  const size_t space = pair.find(' ');
  if (space == absl::string_view::npos ||
      pair.find(' ', space + 1) != absl::string_view::npos) {
    return absl::DataLossError(absl::StrCat(
        where, " is ", Quote(pair), "; it must be two entries and one space"));
  }
  return AddMerge(pair.substr(0, space), pair.substr(space + 1), where, index,
                  out);
}

absl::Status ReadModel(const Json* json, TokenizerSpec* out) {
  if (json == nullptr || !json->is_object()) return Bad("model", "an object");
  const JsonFields fields(*json, kWhere);
  const absl::StatusOr<std::string> type = fields.Find("type") == nullptr
                                               ? TypeByKeys(fields)
                                               : fields.String("type");
  if (!type.ok()) return type.status();
  if (*type == "WordPiece") return ReadWordPiece(fields, out);
  if (*type == "BPE") return ReadBytePair(fields, out);
  if (*type == "Unigram") return ReadUnigram(fields, out);
  return Unsupported("model", *type, "WordPiece, BPE, Unigram");
}

}  // namespace encoderd::json_parts
