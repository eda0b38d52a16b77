// Text on its way through normalizer and pre-tokenizer: bytes and, when they
// are tracked, the place in the original text that each byte stands for.
//
// Not thread-safe: a buffer of one thread.
#ifndef ENCODERD_ENGINE_TOKENIZER_NORMAL_TEXT_H_
#define ENCODERD_ENGINE_TOKENIZER_NORMAL_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/tokenizer/tokenizer.h"

namespace encoderd {

// Bytes [begin, end) of a text.
struct TextRange {
  int32_t begin = 0;
  int32_t end = 0;
};

class NormalText {
 public:
  // Empties it.
  void Reset(bool tracked) {
    text_.clear();
    places_.clear();
    tracked_ = tracked;
  }
  // Well-formed UTF-8 of the original text, which starts there at `origin`.
  void Assign(absl::string_view text, int32_t origin, bool tracked);

  // All bytes of what is appended stand for `place`.
  void Append(absl::string_view text, ByteOffset place);
  // A part of another text, with its places. Both are tracked or neither.
  void Append(const NormalText& from, TextRange range);

  absl::string_view text() const { return text_; }
  absl::string_view text(TextRange range) const {
    return absl::string_view(text_).substr(range.begin,
                                           range.end - range.begin);
  }
  TextRange all() const { return {0, static_cast<int32_t>(text_.size())}; }
  bool tracked() const { return tracked_; }

  // Place in the original of a range that is not empty; of a tracked text.
  ByteOffset Place(TextRange range) const {
    return {places_[range.begin].begin, places_[range.end - 1].end};
  }

  // Gives back memory beyond what texts of usual length need.
  void Shrink();

 private:
  std::string text_;
  std::vector<ByteOffset> places_;  // [bytes], or empty when not tracked
  bool tracked_ = false;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_NORMAL_TEXT_H_
