// grpc::Status -> absl::Status, google.rpc details as payloads. Internal to
// the library. Thread-safe: pure functions.
#ifndef ENCODERD_CLIENT_CPP_GRPC_STATUS_H_
#define ENCODERD_CLIENT_CPP_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/inputs.h"
#include "google/rpc/status.pb.h"

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

// The same of an error that stands inside an answer; OK if its code is.
absl::Status FromDetails(const google::rpc::Status& error, int64_t first_input);

// An error that stands in the place of input i of `cut`, which was sent.
absl::Status ErrorInPlace(const google::rpc::Status& error, const Cut& cut,
                          int64_t i);

// INTERNAL unless there are as many results as inputs were sent.
absl::Status CheckCount(int64_t results, int64_t sent);
// The same of the inputs of `cut` that were sent.
absl::Status CheckCount(int64_t results, const Cut& cut);

// Whether gRPC itself refused a request of `bytes` for its size. It names the
// size; no ErrorInfo comes with it, and the server has not seen the request.
bool IsTooLarge(const absl::Status& status, int64_t bytes);

// What to say of such a request: REQUEST_TOO_LARGE,
// naming the inputs of `cut`; of one input, with its input_index.
absl::Status NameTooLarge(const absl::Status& status, const Cut& cut,
                          int64_t bytes);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_GRPC_STATUS_H_
