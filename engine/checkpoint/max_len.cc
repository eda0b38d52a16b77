#include "engine/checkpoint/max_len.h"

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/positions.h"

namespace encoderd {
namespace {

// "the position table has rows for"
std::string Bound(const LengthLimits& limits, absl::string_view of_this) {
  return limits.is_table
             ? absl::StrCat("the position table", of_this, " has rows for ")
             : "the model was trained for ";
}

// What the files say; tokens 0: nothing.
MaxLen FromFiles(const LengthLimits& limits) {
  MaxLen chosen;
  const auto lower = [&](int64_t limit, MaxLenSource source) {
    if (limit == 0 || (chosen.tokens != 0 && limit >= chosen.tokens)) return;
    chosen.tokens = static_cast<int32_t>(limit);
    chosen.source = source;
  };
  const MaxLenSource table = limits.is_table ? MaxLenSource::kPositionTable
                                             : MaxLenSource::kMaxPositions;
  if (limits.table_bounds) lower(limits.table, table);
  const auto note_ignored = [&](absl::string_view name, int64_t limit) {
    if (!limits.table_bounds || limit <= limits.table) return;
    chosen.notes.push_back(absl::StrCat(name, " ", limit,
                                        " is ignored: ", Bound(limits, ""),
                                        limits.table, " tokens"));
  };
  // sentence-transformers writes the table's rows there, which with RoBERTa's
  // offset are two more than the tokens that it holds.
  note_ignored("max_seq_length", limits.max_seq_length);
  lower(limits.max_seq_length, MaxLenSource::kSentenceTransformers);
  note_ignored("model_max_length", limits.model_max_length);
  lower(limits.model_max_length, MaxLenSource::kTokenizer);
  if (chosen.tokens == 0) lower(limits.table, table);
  return chosen;
}

absl::Status CheckFlag(const LengthLimits& limits) {
  int64_t most = kMaxGeneratedRows;
  std::string bound = "position rows are generated for ";
  if (limits.table_bounds && (limits.is_table || limits.table < most)) {
    most = limits.table;
    bound = Bound(limits, " of this model");
  }
  if (limits.flag >= 0 && limits.flag <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "max_len is ", limits.flag, "; ", bound, "1 to ", most, " tokens"));
}

}  // namespace

const char* MaxLenSourceName(MaxLenSource source) {
  switch (source) {
    case MaxLenSource::kPositionTable:
      return "position_table";
    case MaxLenSource::kSentenceTransformers:
      return "sentence_transformers";
    case MaxLenSource::kTokenizer:
      return "tokenizer";
    case MaxLenSource::kFlag:
      return "flag";
    case MaxLenSource::kMaxPositions:
      return "max_position_embeddings";
  }
  return "unknown";
}

absl::StatusOr<MaxLen> ChooseMaxLen(const LengthLimits& limits) {
  MaxLen chosen = FromFiles(limits);
  if (limits.flag != 0) {
    const absl::Status status = CheckFlag(limits);
    if (!status.ok()) return status;
    if (chosen.tokens != 0 && limits.flag > chosen.tokens) {
      chosen.notes.push_back(absl::StrCat(
          "max_len ", limits.flag, " exceeds the model's limit of ",
          chosen.tokens, " tokens (", MaxLenSourceName(chosen.source),
          "): the model was not trained for longer inputs"));
    }
    chosen.tokens = static_cast<int32_t>(limits.flag);
    chosen.source = MaxLenSource::kFlag;
  }
  if (chosen.source == MaxLenSource::kTokenizer && limits.max_seq_length > 0 &&
      (!limits.table_bounds || limits.max_seq_length <= limits.table)) {
    chosen.notes.push_back(absl::StrCat(
        "model_max_length ", limits.model_max_length,
        " is the limit; sentence-transformers would cut texts at its "
        "max_seq_length ",
        limits.max_seq_length));
  }
  if (chosen.tokens == 0) {
    return absl::InvalidArgumentError(
        "no file of this model limits the input length (max_seq_length, "
        "model_max_length, max_position_embeddings); set max_len to the "
        "model's trained length");
  }
  const bool stored = limits.table_bounds && limits.is_table;
  if (!stored && chosen.tokens > kMaxGeneratedRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model's files allow ", chosen.tokens, " tokens (",
                     MaxLenSourceName(chosen.source),
                     "); position rows are generated for "
                     "at most ",
                     kMaxGeneratedRows, ": set max_len"));
  }
  return chosen;
}

}  // namespace encoderd
