// The entries of a vocabulary that a text begins with, all at once: a
// double-array trie. Constant after construction; thread-safe.
#ifndef ENCODERD_ENGINE_TOKENIZER_UNIGRAM_BYTE_TRIE_H_
#define ENCODERD_ENGINE_TOKENIZER_UNIGRAM_BYTE_TRIE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/tokenizer/double_array.h"

namespace encoderd {

class ByteTrie {
 public:
  ByteTrie() = default;
  // `entries` [id]: not empty. Of equal ones the last id counts.
  explicit ByteTrie(const std::vector<std::string>& entries);

  // Calls visit(id, bytes) for each entry that [begin, end) begins with, the
  // shortest first.
  template <typename Visit>
  void Prefixes(const char* begin, const char* end, const Visit& visit) const {
    int32_t state = root_;
    for (const char* p = begin; p < end; ++p) {
      const int32_t child = states_[state].base ^ static_cast<uint8_t>(*p);
      if (states_[child].parent != state) return;
      state = child;
      if (ids_[state] >= 0) {
        visit(ids_[state], static_cast<int32_t>(p + 1 - begin));
      }
    }
  }

  // The id of an entry; -1 when there is none.
  int32_t Find(absl::string_view entry) const;

 private:
  std::vector<DoubleArray::State> states_;
  std::vector<int32_t> ids_;  // [states], -1: no entry ends here
  int32_t root_ = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_UNIGRAM_BYTE_TRIE_H_
