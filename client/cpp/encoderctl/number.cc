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

}  // namespace encoderd::ctl
