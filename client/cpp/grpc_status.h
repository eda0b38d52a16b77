// grpc::Status -> absl::Status, google.rpc details as payloads; requests that
// are too large. Internal to the library and its command line. Thread-safe:
// pure functions.
#ifndef ENCODERD_CLIENT_CPP_GRPC_STATUS_H_
#define ENCODERD_CLIENT_CPP_GRPC_STATUS_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
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

// The same of an answer that is an error: INTERNAL if it has no code.
absl::Status StreamError(const google::rpc::Status& error, int64_t first_input);

// The error that replaces the result of input i of `cut`, which was sent.
absl::Status ErrorInPlace(const google::rpc::Status& error, const Cut& cut,
                          int64_t i);

// INTERNAL unless there are as many results as inputs were sent.
absl::Status CheckCount(int64_t results, int64_t sent);
// The same of the inputs of `cut` that were sent.
absl::Status CheckCount(int64_t results, const Cut& cut);

// Whether gRPC itself refused a request of `bytes` for its size. It names the
// size, or resets the call of one that no connection has memory for; no
// ErrorInfo comes with it, and the server has not seen the request.
bool IsTooLarge(const absl::Status& status, int64_t bytes);

// What to say of such a request: kRequestTooLarge, naming the inputs of `cut`;
// of one input, with its input_index.
absl::Status NameTooLarge(const absl::Status& status, const Cut& cut,
                          int64_t bytes);

// kRequestTooLarge of a cut of one input, which the server does not name, with
// its input_index; any other status as it is.
absl::Status WithInput(const absl::Status& status, const Cut& cut);

// A context whose call ends at `deadline`, which is by SteadyNow, as all are
// here: gRPC is given a wall time as the clock is now.
std::unique_ptr<grpc::ClientContext> NewContext(absl::Time deadline);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_GRPC_STATUS_H_
