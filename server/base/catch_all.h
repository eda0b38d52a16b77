// What turns exceptions into a status.
#ifndef ENCODERD_SERVER_BASE_CATCH_ALL_H_
#define ENCODERD_SERVER_BASE_CATCH_ALL_H_

#include <exception>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace encoderd {

// Runs `body` and returns its status; an exception becomes INTERNAL with its
// text. Throws only if there is no memory for that text. Thread-safe as `body`
// is.
template <typename Body>
absl::Status CatchAll(const Body& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("exception: ", error.what()));
  } catch (...) {
    return absl::InternalError("exception of an unknown type");
  }
}

}  // namespace encoderd

#endif  // ENCODERD_SERVER_BASE_CATCH_ALL_H_
