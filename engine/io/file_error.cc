#include "engine/io/file_error.h"

#include <cerrno>

namespace encoderd {

bool FileErrorMayPass(int error) {
  switch (error) {
    case EAGAIN:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case EIO:
    case ENETDOWN:
    case ENETUNREACH:
    case ENODEV:
    case ENOTCONN:
    case EREMOTEIO:
    case ESTALE:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

absl::Status FileError(int error, absl::string_view message,
                       absl::StatusCode other) {
  if (FileErrorMayPass(error)) return absl::UnavailableError(message);
  if (error == EMFILE || error == ENFILE || error == ENOMEM) {
    return absl::ResourceExhaustedError(message);
  }
  return absl::Status(other, message);
}

}  // namespace encoderd
