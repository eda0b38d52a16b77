// Floats and counts of texts as text. Thread-safe: pure functions.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_NUMBER_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_NUMBER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace encoderd::ctl {

// Appends the shortest text that reads back as the same float.
void AppendFloat(float value, std::string* out);

// Appends all of them, `separator` between.
void AppendFloats(absl::Span<const float> values, absl::string_view separator,
                  std::string* out);

// "1 text", "2 texts".
std::string Texts(int64_t count);
// "1 text is done", "2 texts are done".
std::string TextsAre(int64_t count, absl::string_view what);
// "1 text was cut", "2 texts were cut".
std::string TextsWere(int64_t count, absl::string_view what);
// "1 of 2 texts was skipped".
std::string SkippedOf(int64_t skipped, int64_t count);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_NUMBER_H_
