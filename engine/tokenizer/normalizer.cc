#include "engine/tokenizer/normalizer.h"

#include <algorithm>
#include <utility>

#include "engine/base/utf8.h"
#include "engine/tokenizer/buffer.h"
#include "engine/tokenizer/text_change.h"
#include "engine/tokenizer/unicode/unicode_rules.h"

namespace encoderd {
namespace {

bool IsAscii(absl::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return (c & 0x80) != 0; });
}

// Each returns whether the result is in *out; if not, the text stays.

bool Apply(const BertNormalizerOptions& step, const NormalText& in,
           NormalText* out, std::vector<NormalChar>* chars) {
  BertNormalize(in.text(), 0, step, chars);
  out->ResetLike(in);
  char bytes[4];
  for (const NormalChar& x : *chars) {
    // The reference gives what has no source the first character's place.
    out->Append(absl::string_view(bytes, utf8::Encode(x.c, bytes)),
                in.Place({x.begin, std::max(x.end, x.begin + 1)}));
  }
  return true;
}

bool Apply(const CharsMap& step, const NormalText& in, NormalText* out,
           std::vector<NormalChar>*) {
  return step.Apply(in, out);
}

bool Apply(const UnicodeFormStep& step, const NormalText& in, NormalText* out,
           std::vector<NormalChar>*) {
  if (IsAscii(in.text())) return false;
  TextChange change(in, out);
  bool stop = false;
  unicode::Normalize(
      in.text(), step.form,
      [&](char32_t c, int32_t by) {
        change.Put(c, by);
        stop = out->exceeded();
      },
      &stop);
  change.Finish();
  return true;
}

bool Apply(const LowercaseStep&, const NormalText& in, NormalText* out,
           std::vector<NormalChar>*) {
  TextChange change(in, out);
  std::u32string lower;
  int32_t done = 0;  // up to here all is put out
  utf8::ForEach(in.text(), [&](char32_t c, int32_t begin, int32_t end) {
    if (c < 0x80 && !(c >= 'A' && c <= 'Z')) return;
    lower.clear();
    unicode::AppendLower(c, &lower);
    if (lower.size() == 1 && lower[0] == c) return;
    change.Keep(in.text({done, begin}));
    done = end;
    for (size_t i = 0; i < lower.size(); ++i) {
      change.Put(lower[i], i > 0 ? 1 : 0);
    }
  });
  change.Keep(in.text({done, in.all().end}));
  change.Finish();
  return true;
}

bool Apply(const StripAccentsStep&, const NormalText& in, NormalText* out,
           std::vector<NormalChar>*) {
  if (IsAscii(in.text())) return false;
  out->ResetLike(in);
  int32_t done = 0;  // up to here all is put out
  utf8::ForEach(in.text(), [&](char32_t c, int32_t begin, int32_t end) {
    if (!unicode::IsMark(c)) return;
    out->Append(in, {done, begin});
    done = end;
  });
  out->Append(in, {done, in.all().end});
  return true;
}

bool Apply(const StripStep& step, const NormalText& in, NormalText* out,
           std::vector<NormalChar>*) {
  const absl::string_view text = in.text();
  const auto space_at = [text](int64_t at, int* length) {
    return unicode::IsSpace(utf8::Decode(
        reinterpret_cast<const uint8_t*>(text.data()) + at, length));
  };
  TextRange kept = in.all();
  int length = 0;
  while (step.left && kept.begin < kept.end && space_at(kept.begin, &length)) {
    kept.begin += length;
  }
  while (step.right && kept.begin < kept.end) {
    const int64_t last = utf8::Previous(text, kept.end);
    if (!space_at(last, &length)) break;
    kept.end = static_cast<int32_t>(last);
  }
  out->ResetLike(in);
  if (kept.begin < kept.end) out->Append(in, kept);
  return true;
}

bool Apply(const PrependStep& step, const NormalText& in, NormalText* out,
           std::vector<NormalChar>*) {
  if (in.text().empty()) return false;
  int length = 0;
  utf8::Decode(reinterpret_cast<const uint8_t*>(in.text().data()), &length);
  out->ResetLike(in);
  out->Append(step.text, in.Place({0, length}));
  out->Append(in, in.all());
  return true;
}

bool Apply(const ReplaceStep& step, const NormalText& in, NormalText* out,
           std::vector<NormalChar>*) {
  const absl::string_view text = in.text();
  int32_t done = 0;  // up to here all is put out
  size_t next = 0;
  for (size_t found = text.find(step.pattern); found != absl::string_view::npos;
       found = text.find(step.pattern, next)) {
    next = found + step.pattern.size();
    int32_t run = 1;
    if (step.min_run > 0) {
      while (text.substr(next, step.pattern.size()) == step.pattern) {
        next += step.pattern.size();
        ++run;
      }
    }
    if (run < step.min_run) continue;
    if (done == 0) out->ResetLike(in);
    out->Append(in, {done, static_cast<int32_t>(found)});
    done = static_cast<int32_t>(next);
    // What is put there stands for the last byte's character.
    out->Append(step.content, in.Place({done - 1, done}));
  }
  if (done == 0) return false;
  out->Append(in, {done, in.all().end});
  return true;
}

}  // namespace

void Normalizer::Scratch::Shrink() {
  other.Shrink();
  ShrinkBuffer(&chars);
}

void Normalizer::Apply(NormalText* text, Scratch* scratch) const {
  for (const NormalizerStep& step : steps_) {
    const bool changed = std::visit(
        [&](const auto& kind) {
          return encoderd::Apply(kind, *text, &scratch->other, &scratch->chars);
        },
        step);
    if (changed) std::swap(*text, scratch->other);
    if (text->exceeded()) return;
  }
}

std::string Normalizer::Apply(const std::string& text) const {
  NormalText normal;
  normal.Assign(text, 0, false, NormalText::Limit(text.size()));
  Scratch scratch;
  Apply(&normal, &scratch);
  return std::string(normal.text());
}

}  // namespace encoderd
