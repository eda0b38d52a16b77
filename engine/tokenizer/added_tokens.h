// Tokens that are looked for in the text itself, before words: "[SEP]", and
// whatever a tokenizer file adds.
//
// A token is looked for either in the original text or (`normalized`) in the
// normalized one. Among tokens that start at one place the longest wins; found
// tokens do not overlap, but one of spaces may be found again in those that the
// one before stripped. Constant after Build; thread-safe.
#ifndef ENCODERD_ENGINE_TOKENIZER_ADDED_TOKENS_H_
#define ENCODERD_ENGINE_TOKENIZER_ADDED_TOKENS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace encoderd {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool single_word = false;  // only where no word character is next to it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // ... and after it
  bool normalized = false;   // is looked for in the normalized text
  bool special = false;      // stands for no text: [CLS], [PAD], ...
};

class AddedTokens {
 public:
  static constexpr int64_t kMaxTokens = 65536;
  static constexpr int64_t kMaxContentBytes = 256;

  // A stretch of text: an added token, or text between them (id -1).
  struct Piece {
    int64_t begin = 0;
    int64_t end = 0;
    int32_t id = -1;
  };

  // What is looked for is `content`, normalized before if need be. DATA_LOSS:
  // an empty or too long content, the same content twice, too many tokens.
  static absl::StatusOr<AddedTokens> Build(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }

  // Replaces *pieces; together they cover `text`, well-formed UTF-8, in order
  // of their starts.
  void Split(absl::string_view text, std::vector<Piece>* pieces) const;

 private:
  // First place at or after `from` where a token may start; text.size() if
  // none.
  size_t NextCandidate(absl::string_view text, size_t from) const;
  // The longest token that starts at `at`; nullptr when there is none.
  const AddedToken* LongestAt(absl::string_view text, size_t at) const;

  std::vector<AddedToken> tokens_;  // sorted by content
  std::array<bool, 256> starts_{};  // bytes that begin a token
  int only_start_ = -1;             // the one such byte, if there is but one
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_ADDED_TOKENS_H_
