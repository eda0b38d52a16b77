// What the cards of a process must have found out alike at start, so that a
// text has the same bits on each. Thread rule: one thread at a time.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_AGREEMENT_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_AGREEMENT_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace encoderd {
namespace cuda {

class Agreement {
 public:
  // Card `ordinal` found that `what` serves, or that it does not. INTERNAL: an
  // earlier card found the opposite; both are named.
  absl::Status Add(const std::string& what, bool serves, int32_t ordinal) {
    const auto [found, added] = found_.try_emplace(what, serves, ordinal);
    if (added || found->second.first == serves) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(
        "cuda:", ordinal, ": ", what,
        serves ? " works on this GPU but not on cuda:"
               : " fails on this GPU but not on cuda:",
        found->second.second,
        ", so results could differ between them; use only one of them"));
  }

 private:
  std::map<std::string, std::pair<bool, int32_t>> found_;
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_AGREEMENT_H_
