// Unigram: of all ways to cut a word into entries, the one whose scores sum to
// the most (Viterbi), as sentencepiece does it.
//
// Sums are doubles added from left to right, so that ties and roundings are the
// reference's. A character without its own entry scores ten less than the worst
// entry; a run of such characters is one unknown token, or the tokens of their
// bytes. Time is linear in the word's bytes, for one vocabulary. Constant after
// Build; thread-safe.
#ifndef ENCODERD_ENGINE_TOKENIZER_UNIGRAM_UNIGRAM_H_
#define ENCODERD_ENGINE_TOKENIZER_UNIGRAM_UNIGRAM_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/tokenizer/token_model.h"
#include "engine/tokenizer/unigram/byte_trie.h"

namespace encoderd {

struct UnigramOptions {
  std::vector<double> scores;  // [id], finite
  int32_t unk_id = 0;
  // Unknown text becomes "<0x00>" ... "<0xFF>", if the vocabulary has those of
  // its bytes.
  bool byte_fallback = false;
};

class Unigram : public TokenModel {
 public:
  static constexpr int64_t kMaxEntries = 4 << 20;
  static constexpr int64_t kMaxEntryBytes = 1024;

  // `vocabulary` [id]; of an entry that occurs twice, as in older files of
  // camembert, the last id and score count. DATA_LOSS: empty, too large, an
  // entry that is empty, too long or not UTF-8, not a finite score for each,
  // unk_id out of range.
  static absl::StatusOr<std::unique_ptr<const Unigram>> Build(
      std::vector<std::string> vocabulary, UnigramOptions options);

  std::unique_ptr<Scratch> NewScratch() const override;
  void Encode(absl::string_view word, Scratch* scratch) const override;
  absl::string_view Value(int32_t id,
                          absl::string_view surface) const override {
    return id == unk_id_ ? surface : absl::string_view(vocabulary_[id]);
  }
  const std::vector<std::string>& vocabulary() const override {
    return vocabulary_;
  }
  const std::string& algorithm() const override;

 private:
  class OwnScratch;

  Unigram() = default;
  // Appends the tokens of unknown text word[begin, end).
  void PutUnknown(absl::string_view word, int32_t begin, int32_t end,
                  std::vector<Piece>* pieces) const;

  std::vector<std::string> vocabulary_;
  std::vector<double> scores_;
  ByteTrie trie_;
  std::array<int32_t, 256> byte_ids_{};  // -1: none
  double unk_score_ = 0;
  int32_t unk_id_ = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_UNIGRAM_UNIGRAM_H_
