#include "engine/tokenizer/bpe/byte_pair.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/tokenizer/bpe/byte_level.h"
#include "engine/tokenizer/buffer.h"
#include "engine/tokenizer/vocabulary.h"

namespace encoderd {
namespace {

constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
// Symbols up to which looking at all of them beats keeping a heap.
constexpr size_t kShort = 48;

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 |
         static_cast<uint32_t>(right);
}

}  // namespace

class BytePair::OwnScratch : public TokenModel::Scratch {
 public:
  // A possible merge of the symbol at `place` with the next one.
  struct Candidate {
    int32_t rank;
    int32_t place;
    int32_t id;
    // A heap's top is its greatest: the lowest rank, the leftmost of equals.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : place > other.place;
    }
  };
  struct Link {
    int32_t previous;
    int32_t next;  // -1: none
  };

  void Shrink() override {
    ShrinkBuffer(&pieces);
    ShrinkBuffer(&candidates);
    ShrinkBuffer(&links);
  }

  std::vector<Result> results;        // of each symbol with the next
  std::vector<Candidate> candidates;  // a heap
  std::vector<Link> links;            // [pieces]
};

absl::Status BytePair::ReadVocabulary(std::vector<std::string> vocabulary) {
  absl::Status status =
      CheckVocabulary(vocabulary, {kMaxEntries, kMaxEntryBytes});
  if (!status.ok()) return status;
  vocabulary_ = std::move(vocabulary);
  byte_ids_.fill(-1);
  for (size_t id = 0; id < vocabulary_.size(); ++id) {
    const std::optional<std::string> bytes =
        byte_level::ToBytes(vocabulary_[id]);
    if (bytes.has_value() && bytes->size() == 1) {
      byte_ids_[static_cast<uint8_t>((*bytes)[0])] = static_cast<int32_t>(id);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<const BytePair>> BytePair::Build(
    std::vector<std::string> vocabulary, BytePairOptions options) {
  auto model = absl::WrapUnique(new BytePair());
  absl::Status status = model->ReadVocabulary(std::move(vocabulary));
  if (!status.ok()) return status;
  if (options.unk_token.has_value()) {
    absl::StatusOr<int32_t> unk =
        FindUnknownToken(model->vocabulary_, *options.unk_token);
    if (!unk.ok()) return unk.status();
    model->unk_id_ = *unk;
  }
  model->fuse_unk_ = options.fuse_unk;
  if (static_cast<int64_t>(options.merges.size()) > kMaxMerges) {
    return absl::DataLossError(absl::StrCat("the vocabulary has ",
                                            options.merges.size(),
                                            " merges; at most ", kMaxMerges));
  }
  const auto entries = static_cast<int32_t>(model->vocabulary_.size());
  ReserveAll(options.merges.size(), &model->merges_);
  int32_t rank = 0;
  for (const BytePairOptions::Merge& merge : options.merges) {
    for (const int32_t id : {merge.left, merge.right, merge.result}) {
      if (id < 0 || id >= entries) {
        return absl::DataLossError(
            absl::StrCat("merge ", rank, " names the token id ", id,
                         "; the vocabulary has ", entries));
      }
    }
    // Of a pair that is given twice the reference takes the last.
    model->merges_[PairKey(merge.left, merge.right)] = {rank, merge.result};
    ++rank;
  }
  if (options.ignore_merges) {
    ReserveAll(model->vocabulary_.size(), &model->whole_words_);
    for (int32_t id = 0; id < entries; ++id) {
      std::optional<std::string> bytes =
          byte_level::ToBytes(model->vocabulary_[id]);
      if (bytes.has_value()) model->whole_words_[*std::move(bytes)] = id;
    }
  }
  return model;
}

std::unique_ptr<TokenModel::Scratch> BytePair::NewScratch() const {
  return std::make_unique<OwnScratch>();
}

const std::string& BytePair::algorithm() const {
  static const std::string* const name = new std::string("BPE");
  return *name;
}

int BytePair::missing_bytes() const {
  return static_cast<int>(
      std::count(byte_ids_.begin(), byte_ids_.end(), int32_t{-1}));
}

BytePair::Result BytePair::Find(int32_t left, int32_t right) const {
  const auto found = merges_.find(PairKey(left, right));
  return found == merges_.end() ? Result{kNone, 0} : found->second;
}

void BytePair::Encode(absl::string_view word, Scratch* scratch) const {
  auto* const own = static_cast<OwnScratch*>(scratch);
  std::vector<Piece>& pieces = own->pieces;
  pieces.clear();
  if (!whole_words_.empty()) {
    const auto whole = whole_words_.find(word);
    if (whole != whole_words_.end()) {
      pieces.push_back({whole->second, 0, static_cast<int32_t>(word.size())});
      return;
    }
  }
  pieces.reserve(word.size());
  // A byte without a token has no length either, as in the reference: places
  // count the bytes of tokens only.
  int32_t at = 0;
  bool unknown_before = false;
  for (const char byte : word) {
    const int32_t id = byte_ids_[static_cast<uint8_t>(byte)];
    if (id < 0 && unk_id_ < 0) continue;
    if (id < 0 && unknown_before && fuse_unk_) {
      pieces.back().end = ++at;
      continue;
    }
    pieces.push_back({id < 0 ? unk_id_ : id, at, at + 1});
    ++at;
    unknown_before = id < 0;
  }
  if (pieces.size() <= kShort) {
    MergeShort(own);
  } else {
    MergeLong(own);
  }
}

void BytePair::MergeShort(OwnScratch* scratch) const {
  std::vector<Piece>& pieces = scratch->pieces;
  std::vector<Result>& results = scratch->results;
  results.clear();
  for (size_t i = 1; i < pieces.size(); ++i) {
    results.push_back(Find(pieces[i - 1].id, pieces[i].id));
  }
  while (!results.empty()) {
    const auto best = std::min_element(
        results.begin(), results.end(),
        [](const Result& a, const Result& b) { return a.rank < b.rank; });
    if (best->rank == kNone) return;
    const auto place = static_cast<size_t>(best - results.begin());
    pieces[place].id = best->id;
    pieces[place].end = pieces[place + 1].end;
    pieces.erase(pieces.begin() + static_cast<int64_t>(place) + 1);
    results.erase(best);
    if (place > 0) {
      results[place - 1] = Find(pieces[place - 1].id, pieces[place].id);
    }
    if (place < results.size()) {
      results[place] = Find(pieces[place].id, pieces[place + 1].id);
    }
  }
}

void BytePair::MergeLong(OwnScratch* scratch) const {
  using Candidate = OwnScratch::Candidate;
  std::vector<Piece>& pieces = scratch->pieces;
  std::vector<OwnScratch::Link>& links = scratch->links;
  std::vector<Candidate>& heap = scratch->candidates;
  const auto count = static_cast<int32_t>(pieces.size());
  links.clear();
  heap.clear();
  for (int32_t i = 0; i < count; ++i) {
    links.push_back({i - 1, i + 1 < count ? i + 1 : -1});
    if (i + 1 == count) break;
    const Result result = Find(pieces[i].id, pieces[i + 1].id);
    if (result.rank != kNone) heap.push_back({result.rank, i, result.id});
  }
  std::make_heap(heap.begin(), heap.end());
  const auto consider = [&](int32_t left, int32_t right) {
    const Result result = Find(pieces[left].id, pieces[right].id);
    if (result.rank == kNone) return;
    heap.push_back({result.rank, left, result.id});
    std::push_heap(heap.begin(), heap.end());
  };
  constexpr int32_t kGone = -1;  // the id of a symbol that was merged away
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Candidate top = heap.back();
    heap.pop_back();
    const int32_t right = links[top.place].next;
    if (pieces[top.place].id == kGone || right < 0) continue;
    // What the heap holds may be of symbols that are merged by now.
    const Result result = Find(pieces[top.place].id, pieces[right].id);
    if (result.rank == kNone || result.id != top.id) continue;
    pieces[top.place].id = top.id;
    pieces[top.place].end = pieces[right].end;
    pieces[right].id = kGone;
    const int32_t next = links[right].next;
    links[top.place].next = next;
    if (next >= 0) links[next].previous = top.place;
    const int32_t previous = links[top.place].previous;
    if (previous >= 0) consider(previous, top.place);
    if (next >= 0) consider(top.place, next);
  }
  pieces.erase(
      std::remove_if(pieces.begin(), pieces.end(),
                     [](const Piece& piece) { return piece.id == kGone; }),
      pieces.end());
}

}  // namespace encoderd
