// Bytes -> a request with inputs.
#ifndef ENCODERD_SERVER_RPC_REQUEST_H_
#define ENCODERD_SERVER_RPC_REQUEST_H_

#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/pipeline/errors.h"
#include "server/rpc/convert.h"

namespace encoderd {

// Parses `bytes` into `request`, a message that has `inputs`. Counts before it
// parses: each input costs memory however small it is. Errors: TOO_MANY_INPUTS
// and those of ParseMessage (wire.h). An empty list is left to the conversion.
//
// bad_texts: where it is given, an input that is not UTF-8 is no error here:
// the request has an input without content in its place, and *bad_texts the
// error (by index), for the conversion to decide.
absl::Status ParseInputs(const RequestLimits& limits,
                         const grpc::ByteBuffer& bytes,
                         google::protobuf::Message* request,
                         std::vector<InputFault>* bad_texts = nullptr);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_REQUEST_H_
