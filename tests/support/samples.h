// The samples of one metric in the text of /metrics, each by itself: sums would
// let one too many and one too few pass.
#ifndef ENCODERD_TESTS_SUPPORT_SAMPLES_H_
#define ENCODERD_TESTS_SUPPORT_SAMPLES_H_

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace encoderd {

using Samples = std::map<std::string, double>;

// The samples of one name, by their labels as they are written.
inline Samples All(const std::string& text, const std::string& name) {
  Samples samples;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, name) || line.empty()) continue;
    if (line[0] != '{' && line[0] != ' ') continue;  // of a longer name
    const size_t space = line.rfind(' ');
    double value = 0;
    EXPECT_TRUE(absl::SimpleAtod(line.substr(space + 1), &value)) << line;
    samples[std::string(line.substr(0, space))] = value;
  }
  return samples;
}

inline Samples NotZero(const Samples& samples) {
  Samples left;
  for (const auto& [labels, value] : samples) {
    if (value != 0) left[labels] = value;
  }
  return left;
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_SAMPLES_H_
