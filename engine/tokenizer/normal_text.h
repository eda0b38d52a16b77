// Text on its way through normalizer and pre-tokenizer: bytes and, when they
// are tracked, the place in the original text that each byte stands for. Which
// bytes stand for the original's first character is always known; they come
// first.
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
    start_bytes_ = 0;
    tracked_ = tracked;
  }
  // Well-formed UTF-8 of the original text, which starts there at `origin`.
  void Assign(absl::string_view text, int32_t origin, bool tracked);

  // All bytes of what is appended stand for `place`.
  void Append(absl::string_view text, ByteOffset place);
  // The same for bytes that do not stand for the original's first character, of
  // a text that is not tracked.
  void AppendLater(absl::string_view text) {
    text_.append(text.data(), text.size());
  }
  // A part of another text, with its places. Both are tracked or neither.
  void Append(const NormalText& from, TextRange range);

  absl::string_view text() const { return text_; }
  absl::string_view text(TextRange range) const {
    return absl::string_view(text_).substr(range.begin,
                                           range.end - range.begin);
  }
  TextRange all() const { return {0, static_cast<int32_t>(text_.size())}; }
  bool tracked() const { return tracked_; }
  // How many bytes stand for the original's first character.
  int32_t start_bytes() const { return start_bytes_; }

  // Place in the original of a range that is not empty. Of a text that is not
  // tracked it only tells the first character from later ones.
  ByteOffset Place(TextRange range) const {
    if (!tracked_) return range.begin < start_bytes_ ? kStart : kLater;
    return {places_[range.begin].begin, places_[range.end - 1].end};
  }

  // Gives back memory beyond what texts of usual length need.
  void Shrink();

 private:
  static constexpr ByteOffset kStart{0, 1};
  static constexpr ByteOffset kLater{1, 2};

  std::string text_;
  std::vector<ByteOffset> places_;  // [bytes], or empty when not tracked
  int32_t start_bytes_ = 0;
  bool tracked_ = false;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_NORMAL_TEXT_H_
