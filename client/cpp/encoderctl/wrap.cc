#include "client/cpp/encoderctl/wrap.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/cpp/utf8.h"

namespace encoderd::ctl {
namespace {

std::string Escaped(char c) {
  return absl::StrFormat("\\x%02x", static_cast<uint8_t>(c));
}

}  // namespace

std::string Wrap(absl::string_view text, int indent) {
  constexpr size_t kColumns = 79;
  std::string lines;
  std::string line(indent, ' ');
  bool empty = true;
  for (const absl::string_view word :
       absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!empty && line.size() + 1 + word.size() > kColumns) {
      absl::StrAppend(&lines, line, "\n");
      line.resize(indent);
      empty = true;
    }
    absl::StrAppend(&line, empty ? "" : " ", word);
    empty = false;
  }
  return absl::StrCat(lines, line, "\n");
}

std::string Printable(absl::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const size_t valid = client::ValidUtf8Prefix(text);
    for (size_t i = 0; i < valid; ++i) {
      const absl::string_view two = text.substr(i, 2);
      if (two >= "\xc2\x80" && two <= "\xc2\x9f") {  // U+0080 to U+009F
        absl::StrAppend(&printable, Escaped(text[i]), Escaped(text[i + 1]));
        ++i;
      } else if (absl::ascii_iscntrl(text[i])) {
        absl::StrAppend(&printable, Escaped(text[i]));
      } else {
        printable += text[i];
      }
    }
    text.remove_prefix(valid);
    if (text.empty()) break;
    absl::StrAppend(&printable, Escaped(text.front()));
    text.remove_prefix(1);
  }
  return printable;
}

}  // namespace encoderd::ctl
