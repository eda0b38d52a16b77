// Floats as text. Thread-safe: pure functions.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_NUMBER_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_NUMBER_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace encoderd::ctl {

// Appends the shortest text that reads back as the same float.
void AppendFloat(float value, std::string* out);

// Appends all of them, `separator` between.
void AppendFloats(absl::Span<const float> values, absl::string_view separator,
                  std::string* out);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_NUMBER_H_
