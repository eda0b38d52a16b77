// Whether certificates and keys in PEM can be used: gRPC itself says no more of
// bad ones than that it has no address. Internal to the library. Thread-safe:
// pure functions.
#ifndef ENCODERD_CLIENT_CPP_PEM_H_
#define ENCODERD_CLIENT_CPP_PEM_H_

#include "absl/strings/string_view.h"

namespace encoderd::client {

// Whether a block begins whose label ends like this, e.g. "PRIVATE KEY".
bool HasPemBlock(absl::string_view text, absl::string_view label);

// Whether there are certificates in `text` and all of them can be read.
bool CanReadCertificates(absl::string_view text);

// Whether there is a key in `text` that needs no passphrase.
bool CanReadKey(absl::string_view text);

// Whether `key` is that of the first of `certificates`; both can be read.
bool IsPair(absl::string_view certificates, absl::string_view key);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_PEM_H_
