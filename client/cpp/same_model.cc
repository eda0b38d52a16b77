#include "client/cpp/same_model.h"

#include "absl/strings/str_cat.h"

namespace encoderd::client {

absl::Status SameModel::Check(const std::string& found) {
  if (found.empty()) return absl::OkStatus();
  if (!seen_.empty() && found != seen_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the server's model or its settings changed during the job: "
        "the fingerprint is ",
        found, " and was ", seen_,
        "; the vectors before and after must not be mixed, so start "
        "the job again with one of them"));
  }
  if (!given_.empty() && found != given_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the server's model or its settings are not those of the given "
        "fingerprint: the fingerprint is ",
        found, ", not ", given_,
        "; the vectors of the two must not be mixed, so call a server that "
        "has the given one, or embed all texts again"));
  }
  seen_ = found;
  return absl::OkStatus();
}

}  // namespace encoderd::client
