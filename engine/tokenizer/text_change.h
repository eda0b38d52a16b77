// Writes a changed copy of a text, keeping for each character the place in the
// original that it stands for, by the reference's bookkeeping: every character
// put out either replaces the next one of the input, or is an addition that
// shares the place of the one before it, or also swallows characters that
// follow.
#ifndef ENCODERD_ENGINE_TOKENIZER_TEXT_CHANGE_H_
#define ENCODERD_ENGINE_TOKENIZER_TEXT_CHANGE_H_

#include <algorithm>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/normal_text.h"

namespace encoderd {

class TextChange {
 public:
  // `out` is emptied; both must outlive this. Finish() after the last Put.
  TextChange(const NormalText& in, NormalText* out) : in_(in), out_(out) {
    out->ResetLike(in);
  }

  // False once all that follows in a text that is not tracked stands for later
  // characters than the first: Copy() is enough then.
  bool places_matter() const {
    return in_.tracked() || at_ <= in_.start_bytes();
  }

  // Removes characters before the first one that is put out.
  void SkipFirst(int32_t chars) { Advance(chars); }

  // change 0: `c` replaces the next character; 1: is added; -n: replaces it and
  // the n after it.
  void Put(char32_t c, int32_t change) {
    if (places_matter()) {
      Finish();
      pending_ = {c, change, true};
    } else {
      char bytes[4];
      Copy(absl::string_view(bytes, utf8::Encode(c, bytes)));
    }
  }
  // Puts out the next characters of the input, `text`, as they are.
  void Keep(absl::string_view text) {
    int length = 0;
    for (; !text.empty() && places_matter(); text.remove_prefix(length)) {
      Put(utf8::Decode(reinterpret_cast<const uint8_t*>(text.data()), &length),
          0);
    }
    if (!text.empty()) Copy(text);
  }
  // Puts out characters where places do not matter.
  void Copy(absl::string_view text) {
    Finish();
    out_->AppendLater(text);
  }
  // Changes the last `change`; nothing where nothing was put out.
  void AddToLast(int32_t change) { pending_.change += change; }

  void Finish() {
    if (!pending_.is_set) return;
    char bytes[4];
    const int length = utf8::Encode(pending_.c, bytes);
    const int32_t last = std::max(in_.all().end - 1, 0);
    const int32_t at =
        pending_.change > 0 ? std::max(at_ - 1, 0) : std::min(at_, last);
    const ByteOffset place = in_.Place({at, at + 1});
    if (pending_.change <= 0) Advance(1 - pending_.change);
    out_->Append(absl::string_view(bytes, length), place);
    pending_.is_set = false;
  }

 private:
  struct Pending {
    char32_t c = 0;
    int32_t change = 0;
    bool is_set = false;
  };

  void Advance(int32_t chars) {
    const absl::string_view text = in_.text();
    for (; chars > 0 && at_ < in_.all().end; --chars) {
      int length;
      utf8::Decode(reinterpret_cast<const uint8_t*>(text.data()) + at_,
                   &length);
      at_ += length;
    }
  }

  const NormalText& in_;
  NormalText* const out_;
  int32_t at_ = 0;  // byte of the input up to which it is dealt with
  Pending pending_;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_TEXT_CHANGE_H_
