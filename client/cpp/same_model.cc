#include "client/cpp/same_model.h"

#include "absl/strings/str_cat.h"

namespace encoderd::client {

absl::Status SameModel::Check(const std::string& found) {
  if (found.empty()) return absl::OkStatus();
  if (fingerprint_.empty()) fingerprint_ = found;
  if (found == fingerprint_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the server's model or its settings changed during the job: "
                   "the fingerprint "
                   "is ",
                   found, " and was ", fingerprint_,
                   "; the vectors before and after must not be mixed, so start "
                   "the job again with one of them"));
}

}  // namespace encoderd::client
