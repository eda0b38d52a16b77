// WordPiece: one word -> the longest vocabulary entries from left to right, in
// time linear in the word's bytes.
//
// All entries lie in one double-array trie with two roots: one for entries that
// start a word, one for those that continue it, prefix ("##") removed. Every
// state also knows what to do when the next byte leads nowhere: the entries to
// put out, and the state of the trie of continuations from which to go on. So
// no byte is looked at twice (the idea of Song et al., Fast WordPiece
// Tokenization, 2020). Constant after Build; thread-safe.
#ifndef ENCODERD_ENGINE_TOKENIZER_WORDPIECE_WORD_PIECE_H_
#define ENCODERD_ENGINE_TOKENIZER_WORDPIECE_WORD_PIECE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/tokenizer/double_array.h"

namespace encoderd {

struct WordPieceOptions {
  std::string unk_token = "[UNK]";
  std::string continuing_prefix = "##";
  int32_t max_word_chars = 100;  // code points; a longer word is unknown
};

class WordPiece {
 public:
  // Limits of a vocabulary; beyond them Build answers DATA_LOSS.
  static constexpr int64_t kMaxEntries = 4 << 20;
  static constexpr int64_t kMaxEntryBytes = 1024;
  static constexpr int32_t kMaxWordChars = 1 << 20;

  // `vocabulary` [id]; an empty entry matches no word. DATA_LOSS: no entry, one
  // that is too long, occurs twice or is not UTF-8, no unk_token, failure table
  // too large.
  static absl::StatusOr<WordPiece> Build(std::vector<std::string> vocabulary,
                                         WordPieceOptions options);

  // Writes the ids of a word: normalized UTF-8, not empty, at most
  // max_word_chars code points (the caller counts). Returns the end of the ids,
  // at most one for each byte; nullptr when the word is unknown.
  int32_t* Match(const char* begin, const char* end, int32_t* ids) const;

  // Bytes of a word that `id` stands for, as its first token or a later one.
  int64_t TokenBytes(int32_t id, bool first) const {
    return static_cast<int64_t>(
        vocabulary_[id].size() -
        (first ? 0 : options_.continuing_prefix.size()));
  }

  const std::vector<std::string>& vocabulary() const { return vocabulary_; }
  const WordPieceOptions& options() const { return options_; }
  int32_t unk_id() const { return unk_id_; }
  // The id of an entry as written, "##" included; -1 when there is none.
  int32_t Find(absl::string_view entry) const;

 private:
  struct Failure {
    int32_t next = -1;  // go on from here; -1: the word is unknown
    int32_t ids = 0;    // >= 0: put out ids of pool_ from here, the first of
                        // which is their number; < 0: put out the id ~ids
  };
  friend class WordPieceBuilder;

  int32_t Child(int32_t state, uint8_t byte) const {
    const int32_t child = states_[state].base ^ byte;
    return states_[child].parent == state ? child : -1;
  }
  const Failure& Publish(int32_t state, int32_t** ids) const;

  std::vector<std::string> vocabulary_;
  WordPieceOptions options_;
  std::vector<DoubleArray::State> states_;
  std::vector<Failure> failures_;  // [states]
  std::vector<int32_t> pool_;
  std::vector<int32_t> sorted_;  // ids in the order of their entries' bytes,
                                 // without those of empty entries
  int32_t first_root_ = 0;
  int32_t next_root_ = 0;
  int32_t unk_id_ = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_WORDPIECE_WORD_PIECE_H_
