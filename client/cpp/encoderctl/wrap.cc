#include "client/cpp/encoderctl/wrap.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/cpp/utf8.h"

namespace encoderd::ctl {

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
    for (const char c : text.substr(0, valid)) {
      if (absl::ascii_iscntrl(c)) {
        absl::StrAppendFormat(&printable, "\\x%02x", static_cast<uint8_t>(c));
      } else {
        printable += c;
      }
    }
    text.remove_prefix(valid);
    if (text.empty()) break;
    absl::StrAppendFormat(&printable, "\\x%02x",
                          static_cast<uint8_t>(text.front()));
    text.remove_prefix(1);
  }
  return printable;
}

}  // namespace encoderd::ctl
