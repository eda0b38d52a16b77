#include "client/cpp/encoderctl/number.h"

#include <charconv>

#include "absl/strings/str_cat.h"

namespace encoderd::ctl {

void AppendFloat(float value, std::string* out) {
  char text[32];  // a float's shortest form has at most 15 characters
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  out->append(text, end);
}

void AppendFloats(absl::Span<const float> values, absl::string_view separator,
                  std::string* out) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) absl::StrAppend(out, separator);
    AppendFloat(values[i], out);
  }
}

std::string Texts(int64_t count) {
  return absl::StrCat(count, count == 1 ? " text" : " texts");
}

std::string TextsAre(int64_t count, absl::string_view what) {
  return absl::StrCat(Texts(count), count == 1 ? " is " : " are ", what);
}

std::string TextsWere(int64_t count, absl::string_view what) {
  return absl::StrCat(Texts(count), count == 1 ? " was " : " were ", what);
}

std::string SkippedOf(int64_t skipped, int64_t count) {
  return absl::StrCat(skipped, " of ", Texts(count),
                      skipped == 1 ? " was skipped" : " were skipped");
}

}  // namespace encoderd::ctl
