#include "client/cpp/encoderctl/near_miss.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace encoderd::ctl {
namespace {

constexpr size_t kMostNames = 3;
constexpr size_t kLongestTyped = 64;  // longer ones are no typing errors

// Edits from `a` to `b`; a swap of neighbors is one.
size_t Edits(absl::string_view a, absl::string_view b) {
  std::vector<std::vector<size_t>> edits(a.size() + 1,
                                         std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        edits[i][j] = i + j;
        continue;
      }
      const size_t replaced = edits[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      edits[i][j] =
          std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
      }
    }
  }
  return edits[a.size()][b.size()];
}

}  // namespace

std::vector<std::string> NearMisses(absl::string_view typed,
                                    const std::vector<std::string>& names) {
  std::vector<std::string> near;
  if (typed.empty() || typed.size() > kLongestTyped) return near;
  const std::string lower = absl::AsciiStrToLower(typed);
  for (const std::string& name : names) {
    if (absl::StartsWith(name, lower)) near.push_back(name);
  }
  if (near.empty()) {
    size_t fewest = 1 + (lower.size() + 1) / 4;
    for (const std::string& name : names) {
      const size_t edits = Edits(lower, name);
      if (edits > fewest || edits >= lower.size()) continue;
      if (edits < fewest) near.clear();
      fewest = edits;
      near.push_back(name);
    }
  }
  if (near.size() > kMostNames) near.resize(kMostNames);
  return near;
}

std::string DidYouMean(absl::string_view typed,
                       const std::vector<std::string>& names,
                       absl::string_view prefix) {
  const std::vector<std::string> near = NearMisses(typed, names);
  if (near.empty()) return "";
  std::string words = "; did you mean ";
  for (size_t i = 0; i < near.size(); ++i) {
    absl::StrAppend(&words,
                    i == 0                 ? ""
                    : i + 1 == near.size() ? " or "
                                           : ", ",
                    prefix, near[i]);
  }
  return words + "?";
}

}  // namespace encoderd::ctl
