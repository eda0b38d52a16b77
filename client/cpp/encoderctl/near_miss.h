// Which known names a mistyped one may have meant. Thread-safe: pure functions.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_NEAR_MISS_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_NEAR_MISS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace encoderd::ctl {

// At most three of `names`, in their order: those that begin with `typed`, or
// else those with the fewest edits (insert, delete, replace, swap neighbors)
// from it, if they are few for its length. Upper case counts as lower case.
std::vector<std::string> NearMisses(absl::string_view typed,
                                    const std::vector<std::string>& names);

// "; did you mean --output or --on_error?", each name after `prefix`; empty
// where no name is near.
std::string DidYouMean(absl::string_view typed,
                       const std::vector<std::string>& names,
                       absl::string_view prefix);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_NEAR_MISS_H_
