// Byte-level byte-pair encoding: a word's bytes, of which neighbors are merged
// in the order of a list until no two of them are on it.
//
// Time is n log n in the word's bytes: short words are merged in place, long
// ones with a heap. Constant after Build; thread-safe.
#ifndef ENCODERD_ENGINE_TOKENIZER_BPE_BYTE_PAIR_H_
#define ENCODERD_ENGINE_TOKENIZER_BPE_BYTE_PAIR_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/tokenizer/token_model.h"

namespace encoderd {

struct BytePairOptions {
  // `left` and `right` become `result`; the earlier in the list, the sooner.
  struct Merge {
    int32_t left = 0;
    int32_t right = 0;
    int32_t result = 0;
  };
  std::vector<Merge> merges;
  // For a byte without an entry. Without it such a byte gives no token, as in
  // the reference.
  std::optional<std::string> unk_token;
  bool fuse_unk = false;       // neighbors of that kind are one token
  bool ignore_merges = false;  // a word that is an entry is that token
};

class BytePair : public TokenModel {
 public:
  static constexpr int64_t kMaxEntries = 4 << 20;
  static constexpr int64_t kMaxEntryBytes = 1024;
  static constexpr int64_t kMaxMerges = 4 << 20;

  // `vocabulary` [id] in the byte-level alphabet; the ids of merges are its.
  // DATA_LOSS: empty, too large, an empty or too long entry, one that occurs
  // twice or is not UTF-8, a merge of an id out of range, no unk_token.
  static absl::StatusOr<std::unique_ptr<const BytePair>> Build(
      std::vector<std::string> vocabulary, BytePairOptions options);

  std::unique_ptr<Scratch> NewScratch() const override;
  void Encode(absl::string_view word, Scratch* scratch) const override;
  absl::string_view Value(int32_t id, absl::string_view) const override {
    return vocabulary_[id];
  }
  const std::vector<std::string>& vocabulary() const override {
    return vocabulary_;
  }
  const std::string& algorithm() const override;

  // Bytes without their own entry.
  int missing_bytes() const;

 private:
  struct Result {
    int32_t rank = 0;  // of the merge; kNone: there is none
    int32_t id = 0;
  };
  class OwnScratch;

  BytePair() = default;
  absl::Status ReadVocabulary(std::vector<std::string> vocabulary);
  Result Find(int32_t left, int32_t right) const;
  void MergeShort(OwnScratch* scratch) const;
  void MergeLong(OwnScratch* scratch) const;

  std::vector<std::string> vocabulary_;
  // Words as bytes, for ignore_merges alone.
  absl::flat_hash_map<std::string, int32_t> whole_words_;
  absl::flat_hash_map<uint64_t, Result> merges_;  // left << 32 | right
  std::array<int32_t, 256> byte_ids_{};           // -1: no entry
  int32_t unk_id_ = -1;                           // -1: none
  bool fuse_unk_ = false;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_BPE_BYTE_PAIR_H_
