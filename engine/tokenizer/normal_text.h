// Text on its way through normalizer and pre-tokenizer: bytes and, when they
// are tracked, the place in the original text that each byte stands for. Which
// bytes stand for the original's first character is always known; they come
// first. It has a limit: what would exceed it is counted and left out, so that
// positions stay 32-bit and memory stays bounded.
//
// Not thread-safe: a buffer of one thread.
#ifndef ENCODERD_ENGINE_TOKENIZER_NORMAL_TEXT_H_
#define ENCODERD_ENGINE_TOKENIZER_NORMAL_TEXT_H_

#include <algorithm>
#include <cstdint>
#include <limits>
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
  // Offsets are 32-bit.
  static constexpr int64_t kMaxBytes =
      std::numeric_limits<int32_t>::max() - 4096;

  // How far a text of `bytes` may grow. Writing grows threefold at most (Hangul
  // to NFD, spaces to U+2581); by a factor above 4 only characters do that
  // stand for whole words (squared: U+3316; Korean in parentheses: U+321D;
  // Arabic ligatures: U+FDFA, 11), which therefore work up to 1 MiB of result.
  static int64_t Limit(int64_t bytes) {
    return std::min(std::max<int64_t>(4 * bytes, 1 << 20), kMaxBytes);
  }

  // Empties it.
  void Reset(bool tracked, int64_t limit = kMaxBytes) {
    text_.clear();
    places_.clear();
    start_bytes_ = 0;
    tracked_ = tracked;
    limit_ = static_cast<size_t>(limit);
    left_out_ = 0;
  }
  // Empties it, for a changed copy of `from`.
  void ResetLike(const NormalText& from) {
    Reset(from.tracked_, static_cast<int64_t>(from.limit_));
  }
  // Well-formed UTF-8 of the original text, which starts there at `origin`. At
  // most kMaxBytes; `limit` is for what follows.
  void Assign(absl::string_view text, int32_t origin, bool tracked,
              int64_t limit = kMaxBytes);

  // All bytes of what is appended stand for `place`.
  void Append(absl::string_view text, ByteOffset place);
  // The same for bytes that do not stand for the original's first character, of
  // a text that is not tracked.
  void AppendLater(absl::string_view text) {
    if (HasRoom(text.size())) text_.append(text.data(), text.size());
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
  // True if something was left out: all but wanted_bytes() is meaningless then.
  bool exceeded() const { return left_out_ > 0; }
  // The bytes that it would have without a limit.
  int64_t wanted_bytes() const {
    return static_cast<int64_t>(text_.size()) + left_out_;
  }
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

  bool HasRoom(size_t bytes) {
    if (text_.size() + bytes <= limit_) return true;
    left_out_ += static_cast<int64_t>(bytes);
    return false;
  }

  std::string text_;
  std::vector<ByteOffset> places_;  // [bytes], or empty when not tracked
  int32_t start_bytes_ = 0;
  bool tracked_ = false;
  size_t limit_ = kMaxBytes;
  int64_t left_out_ = 0;  // bytes
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_NORMAL_TEXT_H_
