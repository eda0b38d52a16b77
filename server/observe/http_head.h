// Finds, reads and checks the head of an HTTP/1 request (RFC 9112). Pure.
#ifndef ENCODERD_SERVER_OBSERVE_HTTP_HEAD_H_
#define ENCODERD_SERVER_OBSERVE_HTTP_HEAD_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace encoderd {

struct HttpHead {
  absl::string_view method;
  absl::string_view path;  // without scheme, authority and query; never empty
};

// The head at the start of `received`, without the empty line that ends it and
// one that may precede it. nullopt: incomplete.
std::optional<absl::string_view> FindHttpHead(absl::string_view received);

// Views of `head`. INVALID_ARGUMENT: malformed; UNIMPLEMENTED: of a later major
// version. Messages repeat nothing of `head`.
absl::StatusOr<HttpHead> ParseHttpHead(absl::string_view head);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_OBSERVE_HTTP_HEAD_H_
