// What every way of carrying a request needs: bytes -> a request with inputs,
// the limit on an answer, and the one place that catches.
#ifndef ENCODERD_SERVER_RPC_REQUEST_H_
#define ENCODERD_SERVER_RPC_REQUEST_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/pipeline/errors.h"
#include "server/rpc/convert.h"

namespace encoderd {

// Parses `bytes` into `request`, a message that has `inputs` and no other list
// of its own. Counts before it parses: each input costs memory however small it
// is. Errors: TOO_MANY_INPUTS and those of ParseMessage (wire.h). An empty list
// is left to the conversion.
//
// bad_texts: where it is given, an input that is not UTF-8 is no error here:
// the request has an input without content in its place, and *bad_texts the
// error (by index), for the conversion to decide.
absl::Status ParseInputs(const RequestLimits& limits,
                         const grpc::ByteBuffer& bytes,
                         google::protobuf::Message* request,
                         std::vector<InputFault>* bad_texts = nullptr);

// REQUEST_TOO_LARGE (reply_bytes, limit) for an answer above the limit. field:
// "inputs", or empty for a request that has none.
absl::Status CheckAnswerSize(const google::protobuf::Message& answer,
                             const RequestLimits& limits,
                             absl::string_view field);

// Runs `body`; what it throws becomes INTERNAL.
absl::Status CatchAll(const std::function<absl::Status()>& body);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_REQUEST_H_
