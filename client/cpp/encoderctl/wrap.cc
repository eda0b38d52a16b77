#include "client/cpp/encoderctl/wrap.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

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

}  // namespace encoderd::ctl
