#include "engine/tokenizer/wordpiece/word_piece.h"

#include <algorithm>

namespace encoderd {

inline const WordPiece::Failure& WordPiece::Publish(int32_t state,
                                                    int32_t** ids) const {
  const Failure& failure = failures_[state];
  if (failure.ids < 0) {
    *(*ids)++ = ~failure.ids;
  } else {
    const int32_t* from = &pool_[failure.ids];
    for (int32_t left = *from++; left > 0; --left) *(*ids)++ = *from++;
  }
  return failure;
}

int32_t* WordPiece::Match(const char* begin, const char* end,
                          int32_t* ids) const {
  int32_t state = first_root_;
  for (const char* p = begin; p < end; ++p) {
    const auto byte = static_cast<uint8_t>(*p);
    for (;;) {
      const int32_t child = Child(state, byte);
      if (child >= 0) {
        state = child;
        break;
      }
      if (failures_[state].next < 0) return nullptr;
      state = Publish(state, &ids).next;
    }
  }
  while (state != next_root_) {
    if (failures_[state].next < 0) return nullptr;
    state = Publish(state, &ids).next;
  }
  return ids;
}

int32_t WordPiece::Find(absl::string_view entry) const {
  const auto at = std::lower_bound(
      sorted_.begin(), sorted_.end(), entry,
      [this](int32_t id, absl::string_view x) { return vocabulary_[id] < x; });
  return at != sorted_.end() && vocabulary_[*at] == entry ? *at : -1;
}

}  // namespace encoderd
