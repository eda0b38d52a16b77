// grpc::Status -> absl::Status, google.rpc details as payloads. Internal to
// the library. Thread-safe: pure functions.
#ifndef ENCODERD_CLIENT_CPP_GRPC_STATUS_H_
#define ENCODERD_CLIENT_CPP_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace encoderd::client {

// The payload key of a detail, e.g. "type.googleapis.com/google.rpc.ErrorInfo".
template <typename Message>
std::string TypeUrl() {
  return absl::StrCat("type.googleapis.com/",
                      std::string(Message::descriptor()->full_name()));
}

// The same code, message and details. The call carried the caller's inputs
// from `first_input` on: "inputs[i]" in message and fields, and `input_index`
// in the metadata, are moved by it, so that they name the caller's own list.
absl::Status FromGrpc(const grpc::Status& status, int64_t first_input);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_GRPC_STATUS_H_
