// grpc::Status -> absl::Status, google.rpc details as payloads; which errors
// pass. Internal to the library and its command line. Thread-safe: functions,
// pure but for pauses that are spread at random.
#ifndef ENCODERD_CLIENT_CPP_GRPC_STATUS_H_
#define ENCODERD_CLIENT_CPP_GRPC_STATUS_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <memory>
#include <optional>
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

// Reasons that the library and its command line know (GetReason).
inline constexpr char kDraining[] = "DRAINING";
inline constexpr char kInvalidUtf8[] = "INVALID_UTF8";
inline constexpr char kLoading[] = "LOADING";
inline constexpr char kRequestTooLarge[] = "REQUEST_TOO_LARGE";
inline constexpr char kTooManyInputs[] = "TOO_MANY_INPUTS";

// Whether gRPC itself refused a request of `bytes` for its size. It names the
// size, or resets the call of one that no connection has memory for; no
// ErrorInfo comes with it, and the server has not seen the request.
bool IsTooLarge(const absl::Status& status, int64_t bytes);

// The bytes of the largest request that the server takes, if it refused one of
// `bytes` for its size and names them.
std::optional<int64_t> LargestRequest(const absl::Status& status,
                                      int64_t bytes);

// That refusal, of a request of `bytes` that is not sent, since the server
// takes at most `limit`.
grpc::Status TooLargeFor(int64_t bytes, int64_t limit);

// What to say of such a request: kRequestTooLarge,
// naming the inputs of `cut`; of one input, with its input_index. The metadata
// has the limit, if it is known.
absl::Status NameTooLarge(const absl::Status& status, const Cut& cut,
                          int64_t bytes);

// kRequestTooLarge of a cut of one input, which the server does not name, with
// its input_index; any other status as it is.
absl::Status WithInput(const absl::Status& status, const Cut& cut);

// A context whose call ends at `deadline`, which is by SteadyNow, as all are
// here: gRPC is given a wall time as the clock is now.
std::unique_ptr<grpc::ClientContext> NewContext(absl::Time deadline);

// Between two attempts of a call.
inline constexpr absl::Duration kLeastPause = absl::Milliseconds(10);

// `pause`, or up to half as much more, at random: what a server refuses
// together then does not return together.
absl::Duration Spread(absl::Duration pause);

// The pause after which a refused call is made again: the server loads its
// model, or its queue is full, it said for how long, and `deadline` is later.
// Spread.
std::optional<absl::Duration> RetryPause(const absl::Status& status,
                                         absl::Time deadline);

// The pause after which a stream that ended with `status` is opened again:
// `backoff`, or longer if a server that is full asks for that. Spread.
absl::Duration ReopenPause(const absl::Status& status, absl::Duration backoff);

// The pause after which a call is made again whose server has gone: there is no
// connection, or it shuts down and cancels calls. Nothing of any other error,
// or where `deadline` comes first. Not for a call that this client cancelled.
std::optional<absl::Duration> ReturnPause(const absl::Status& status,
                                          absl::Time deadline);

// The pause after attempt `attempt`, from 1 on, of a request that is too long
// for gRPC to send it again (RetryBufferBytes): as many attempts as
// service_config.json has gRPC make of others, after its pauses. Nothing of an
// error that stays, such as a size that the server does not take, after the
// last attempt, or where `deadline` comes first.
std::optional<absl::Duration> LongRequestPause(const absl::Status& status,
                                               int attempt,
                                               absl::Time deadline);

// What to say of a call: the deadline that passed during a further attempt
// explains less than `passing`, why the attempt before was refused. A deadline
// that the server itself explains is left as it is.
absl::Status AfterRetries(const absl::Status& status,
                          const absl::Status& passing);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_GRPC_STATUS_H_
