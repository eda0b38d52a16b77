#include "engine/tokenizer/unigram/unigram.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/buffer.h"
#include "engine/tokenizer/vocabulary.h"

namespace encoderd {
namespace {

constexpr double kUnknownPenalty = 10;

}  // namespace

class Unigram::OwnScratch : public TokenModel::Scratch {
 public:
  // The best way to cut the word up to a byte: its last token.
  struct Node {
    double score = 0;
    int32_t begin = -1;  // of that token; -1: no way leads here
    int32_t id = 0;
  };

  void Shrink() override {
    ShrinkBuffer(&pieces);
    ShrinkBuffer(&nodes);
  }

  std::vector<Node> nodes;  // [bytes + 1]
};

absl::StatusOr<std::unique_ptr<const Unigram>> Unigram::Build(
    std::vector<std::string> vocabulary, UnigramOptions options) {
  absl::Status status =
      CheckVocabulary(vocabulary, {.max_entries = kMaxEntries,
                                   .max_entry_bytes = kMaxEntryBytes,
                                   .unique = false});
  if (!status.ok()) return status;
  const auto entries = static_cast<int64_t>(vocabulary.size());
  if (static_cast<int64_t>(options.scores.size()) != entries) {
    return absl::DataLossError(absl::StrCat("the vocabulary has ", entries,
                                            " entries and ",
                                            options.scores.size(), " scores"));
  }
  for (size_t id = 0; id < options.scores.size(); ++id) {
    if (!std::isfinite(options.scores[id])) {
      return absl::DataLossError(
          absl::StrCat("the score of vocabulary entry ", id, " is not finite"));
    }
  }
  if (options.unk_id < 0 || options.unk_id >= entries) {
    return absl::DataLossError(absl::StrCat("unk_id is ", options.unk_id,
                                            "; it must be an id of the ",
                                            entries, " entries"));
  }
  auto model = absl::WrapUnique(new Unigram());
  model->trie_ = ByteTrie(vocabulary);
  model->vocabulary_ = std::move(vocabulary);
  model->scores_ = std::move(options.scores);
  model->unk_id_ = options.unk_id;
  model->unk_score_ =
      *std::min_element(model->scores_.begin(), model->scores_.end()) -
      kUnknownPenalty;
  model->byte_ids_.fill(-1);
  for (int byte = 0; byte < 256 && options.byte_fallback; ++byte) {
    model->byte_ids_[byte] =
        model->trie_.Find(absl::StrFormat("<0x%02X>", byte));
  }
  return model;
}

std::unique_ptr<TokenModel::Scratch> Unigram::NewScratch() const {
  return std::make_unique<OwnScratch>();
}

const std::string& Unigram::algorithm() const {
  static const std::string* const name = new std::string("Unigram");
  return *name;
}

void Unigram::PutUnknown(absl::string_view word, int32_t begin, int32_t end,
                         std::vector<Piece>* pieces) const {
  const absl::string_view text = word.substr(begin, end - begin);
  // Characters may be unknown one by one and an entry together.
  const int32_t entry = trie_.Find(text);
  if (entry >= 0) {
    pieces->push_back({entry, begin, end});
    return;
  }
  const bool as_bytes = std::all_of(text.begin(), text.end(), [this](char c) {
    return byte_ids_[static_cast<uint8_t>(c)] >= 0;
  });
  if (!as_bytes) {
    pieces->push_back({unk_id_, begin, end});
    return;
  }
  for (auto c = text.rbegin(); c != text.rend(); ++c) {
    pieces->push_back({byte_ids_[static_cast<uint8_t>(*c)], begin, end});
  }
}

void Unigram::Encode(absl::string_view word, Scratch* scratch) const {
  auto* const own = static_cast<OwnScratch*>(scratch);
  std::vector<OwnScratch::Node>& nodes = own->nodes;
  const auto size = static_cast<int32_t>(word.size());
  nodes.assign(word.size() + 1, {});
  const char* const end = word.data() + size;
  const auto consider = [&nodes](int32_t from, int32_t to, double score,
                                 int32_t id) {
    OwnScratch::Node& node = nodes[to];
    if (node.begin < 0 || score > node.score) node = {score, from, id};
  };
  int length = 0;
  for (int32_t at = 0; at < size; at += length) {
    const char* const begin = word.data() + at;
    utf8::Decode(reinterpret_cast<const uint8_t*>(begin), &length);
    const double so_far = nodes[at].score;
    bool has_single = false;
    trie_.Prefixes(begin, end, [&](int32_t id, int32_t bytes) {
      consider(at, at + bytes, scores_[id] + so_far, id);
      has_single = has_single || bytes == length;
    });
    if (!has_single) consider(at, at + length, unk_score_ + so_far, unk_id_);
  }
  // From the end back; unknown neighbors are one.
  std::vector<Piece>& pieces = own->pieces;
  pieces.clear();
  int32_t unknown_end = -1;
  int32_t at = size;
  while (at > 0) {
    const OwnScratch::Node& node = nodes[at];
    if (node.id == unk_id_) {
      if (unknown_end < 0) unknown_end = at;
    } else {
      if (unknown_end >= 0) PutUnknown(word, at, unknown_end, &pieces);
      unknown_end = -1;
      pieces.push_back({node.id, node.begin, at});
    }
    at = node.begin;
  }
  if (unknown_end >= 0) PutUnknown(word, 0, unknown_end, &pieces);
  std::reverse(pieces.begin(), pieces.end());
}

}  // namespace encoderd
