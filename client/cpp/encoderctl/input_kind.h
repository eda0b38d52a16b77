// What an input is, by its name or by how it begins: how its texts are read,
// or why they are not. Thread-safe: pure functions.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_INPUT_KIND_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_INPUT_KIND_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace encoderd::ctl {

enum class InputFormat { kAuto, kLines, kJsonl, kCsv, kTsv, kJson };

// The word for it in --input_format; but for kAuto and kLines, also the ending
// of such a file.
absl::string_view WordOf(InputFormat format);

// Any but kAuto, by the ending of `file`. INVALID_ARGUMENT says what to do
// about a file that is not read.
absl::StatusOr<InputFormat> FormatOfFile(absl::string_view file);

// Whether `text` is more likely the name of a file of texts than a text: one
// word with the ending of a format, or .txt.
bool LooksLikeFileName(absl::string_view text);

// INVALID_ARGUMENT if `bytes`, the first of the input `name`, are those of a
// compressed file or another one without text.
absl::Status CheckFirstBytes(absl::string_view name, absl::string_view bytes);

// Whether `bytes`, the first of an input, are too few for CheckFirstBytes: they
// begin as no UTF-8 does, or as such a file, and what follows says what they
// are.
bool NeedsMoreFirstBytes(absl::string_view bytes);

// Whether `line`, the first of the input, is more likely JSON than prose: a
// whole string, array or object, or the start of one.
bool LooksLikeJson(absl::string_view line);

// Whether `line`, the first of the input, is more likely the header of a table
// with the column `field` than prose, which has blanks after its commas.
bool LooksLikeTable(absl::string_view line, absl::string_view field,
                    char separator);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_INPUT_KIND_H_
