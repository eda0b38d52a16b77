#include "engine/tokenizer/unicode/unicode_forms.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/utf8.h"
#include "engine/tokenizer/unicode/unicode_rules.h"

namespace encoderd::unicode {
namespace {

using PutFunction = std::function<void(char32_t, int32_t)>;

struct Part {
  char32_t c;
  uint8_t combining_class;
  int32_t change;  // 0: the first of its source, 1: a further one
};

// Composes what it is given in canonical order.
class Composer {
 public:
  explicit Composer(const PutFunction& put) : put_(put) {}

  void Add(const Part& part) {
    if (!starter_.has_value()) {
      if (part.combining_class != 0) {
        put_(part.c, part.change);
      } else {
        starter_ = part;
      }
      return;
    }
    // A mark is blocked from the starter by one before it of the same class or
    // a higher one; a starter by any mark.
    const bool blocked = !marks_.empty() &&
                         marks_.back().combining_class >= part.combining_class;
    const char32_t composed = blocked ? 0 : Compose(starter_->c, part.c);
    if (composed != 0) {
      starter_->c = composed;
      starter_->change += part.change - 1;
      return;
    }
    if (part.combining_class != 0) {
      marks_.push_back(part);
      return;
    }
    Flush();
    starter_ = part;
  }

  void Flush() {
    if (starter_.has_value()) put_(starter_->c, starter_->change);
    starter_.reset();
    for (const Part& mark : marks_) put_(mark.c, mark.change);
    marks_.clear();
  }

 private:
  const PutFunction& put_;
  std::optional<Part> starter_;
  std::vector<Part> marks_;
};

}  // namespace

void Normalize(absl::string_view text, Form form, const PutFunction& put,
               const bool* stop) {
  const bool compatible = form == Form::kNfkc || form == Form::kNfkd;
  const bool compose = form == Form::kNfc || form == Form::kNfkc;
  Composer composer(put);
  const auto emit = [&](const Part& part) {
    if (compose) {
      composer.Add(part);
    } else {
      put(part.c, part.change);
    }
  };
  std::vector<Part> marks;  // since the last starter
  const auto flush = [&] {
    std::stable_sort(marks.begin(), marks.end(),
                     [](const Part& a, const Part& b) {
                       return a.combining_class < b.combining_class;
                     });
    for (const Part& part : marks) emit(part);
    marks.clear();
  };
  const auto add = [&](const Part& part) {
    if (part.combining_class != 0) {
      marks.push_back(part);
    } else {
      flush();
      emit(part);
    }
  };
  std::u32string decomposed;
  int length = 0;
  for (size_t at = 0; at < text.size(); at += length) {
    const char32_t c = utf8::Decode(
        reinterpret_cast<const uint8_t*>(text.data()) + at, &length);
    if (IsInert(c, compatible)) {
      add({c, 0, 0});
      continue;
    }
    if (*stop) break;
    decomposed.clear();
    if (compatible) {
      AppendCompatible(c, &decomposed);
    } else {
      AppendDecomposed(c, &decomposed);
    }
    for (size_t i = 0; i < decomposed.size(); ++i) {
      add({decomposed[i], CombiningClass(decomposed[i]), i > 0 ? 1 : 0});
    }
  }
  flush();
  composer.Flush();
}

}  // namespace encoderd::unicode
