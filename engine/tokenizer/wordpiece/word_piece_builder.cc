// Builds the double array and the failure table of WordPiece, breadth first: a
// state's failure refers to states of a smaller depth only.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/tokenizer/vocabulary.h"
#include "engine/tokenizer/wordpiece/word_piece.h"

namespace encoderd {
namespace {

// A failure table grows with the product of entries and their lengths only for
// vocabularies made to do so; real ones stay under a tenth of this.
constexpr size_t kMaxPool = 16 << 20;

}  // namespace

class WordPieceBuilder {
 public:
  explicit WordPieceBuilder(WordPiece* out) : out_(*out) {}

  absl::Status Sort();
  absl::Status Build();

 private:
  absl::Status SetFailure(int32_t state, int32_t parent, uint8_t byte);
  void Append(int32_t state, std::vector<int32_t>* ids) const;

  WordPiece& out_;
  DoubleArray places_;
};

absl::Status WordPieceBuilder::Sort() {
  const auto& vocabulary = out_.vocabulary_;
  absl::Status status =
      CheckVocabulary(vocabulary, {.max_entries = WordPiece::kMaxEntries,
                                   .max_entry_bytes = WordPiece::kMaxEntryBytes,
                                   .allow_empty = true});
  if (!status.ok()) return status;
  auto& sorted = out_.sorted_;
  sorted.resize(vocabulary.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  const auto is_empty = [&](int32_t id) { return vocabulary[id].empty(); };
  sorted.erase(std::remove_if(sorted.begin(), sorted.end(), is_empty),
               sorted.end());
  std::sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) {
    return vocabulary[a] < vocabulary[b];
  });
  const absl::StatusOr<int32_t> unk =
      FindUnknownToken(vocabulary, out_.options_.unk_token);
  if (!unk.ok()) return unk.status();
  out_.unk_id_ = *unk;
  return absl::OkStatus();
}

void WordPieceBuilder::Append(int32_t state, std::vector<int32_t>* ids) const {
  const int32_t from = out_.failures_[state].ids;
  if (from < 0) {
    ids->push_back(~from);
  } else {
    const auto first = out_.pool_.begin() + from + 1;
    ids->insert(ids->end(), first, first + out_.pool_[from]);
  }
}

absl::Status WordPieceBuilder::SetFailure(int32_t state, int32_t parent,
                                          uint8_t byte) {
  int32_t from = out_.failures_[parent].next;
  if (from < 0) return absl::OkStatus();
  std::vector<int32_t> ids;
  Append(parent, &ids);
  while (out_.Child(from, byte) < 0) {
    const int32_t next = out_.failures_[from].next;
    if (next < 0) return absl::OkStatus();
    Append(from, &ids);
    from = next;
  }
  out_.failures_[state].next = out_.Child(from, byte);
  if (ids.size() == 1) {
    out_.failures_[state].ids = ~ids[0];
    return absl::OkStatus();
  }
  if (out_.pool_.size() + ids.size() + 1 > kMaxPool) {
    return absl::DataLossError(absl::StrCat(
        "the vocabulary's failure table has more than ", kMaxPool, " values"));
  }
  out_.failures_[state].ids = static_cast<int32_t>(out_.pool_.size());
  out_.pool_.push_back(static_cast<int32_t>(ids.size()));
  out_.pool_.insert(out_.pool_.end(), ids.begin(), ids.end());
  return absl::OkStatus();
}

absl::Status WordPieceBuilder::Build() {
  out_.pool_.push_back(0);  // place 0: no ids
  const std::string& prefix = out_.options_.continuing_prefix;
  const auto count = static_cast<int32_t>(out_.sorted_.size());
  int32_t first = 0;
  while (first < count && out_.vocabulary_[out_.sorted_[first]] < prefix) {
    ++first;
  }
  int32_t last = first;
  while (last < count && out_.vocabulary_[out_.sorted_[last]].compare(
                             0, prefix.size(), prefix) == 0) {
    ++last;
  }
  out_.first_root_ = places_.TakeRoot();
  out_.next_root_ = places_.TakeRoot();

  // An entry that is the prefix alone ends at the second root, and so continues
  // no word.
  const std::vector<DoubleArray::Node> nodes =
      places_.PlaceTries(out_.vocabulary_, out_.sorted_,
                         {{out_.first_root_, 0, count, 0},
                          {out_.next_root_, first, last, prefix.size()}});
  out_.states_ = places_.TakeStates();
  out_.failures_.resize(out_.states_.size());
  for (size_t i = 2; i < nodes.size(); ++i) {  // after the roots
    const DoubleArray::Node& node = nodes[i];
    const std::string& entry = out_.vocabulary_[out_.sorted_[node.first]];
    if (entry.size() == node.depth) {
      out_.failures_[node.state] = {out_.next_root_, ~out_.sorted_[node.first]};
      continue;
    }
    absl::Status status =
        SetFailure(node.state, out_.states_[node.state].parent,
                   static_cast<uint8_t>(entry[node.depth - 1]));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<WordPiece> WordPiece::Build(std::vector<std::string> vocabulary,
                                           WordPieceOptions options) {
  WordPiece out;
  out.vocabulary_ = std::move(vocabulary);
  out.options_ = std::move(options);
  WordPieceBuilder builder(&out);
  if (absl::Status status = builder.Sort(); !status.ok()) return status;
  if (absl::Status status = builder.Build(); !status.ok()) return status;
  return out;
}

}  // namespace encoderd
