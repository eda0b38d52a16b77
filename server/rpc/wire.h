// Bytes to messages and back. After a failed parse: which text is not UTF-8, or
// that the bytes are not a message. Thread-safe: plain functions.
#ifndef ENCODERD_SERVER_RPC_WIRE_H_
#define ENCODERD_SERVER_RPC_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "server/pipeline/errors.h"

namespace encoderd {

// The string of field `number` at the top level (the last one, like the
// parser), in bytes that may not be a message; searches only the first
// kMaxFields fields (parse_cost.h). Empty: missing, longer than max_bytes, or
// not UTF-8.
std::string FindString(const grpc::ByteBuffer& bytes, int number,
                       size_t max_bytes);

// Parses `bytes`; `message` has the request type of the method. Errors:
// those of CheckParseCost (parse_cost.h) and of ParseChecked.
absl::Status ParseMessage(const grpc::ByteBuffer& bytes,
                          google::protobuf::Message* message);

// The same for bytes that passed CheckParseCost. Errors: INVALID_ARGUMENT,
// INVALID_UTF8 (field; byte_offset; input_index if an input is at fault) or
// MALFORMED_MESSAGE.
absl::Status ParseChecked(const grpc::ByteBuffer& bytes,
                          google::protobuf::Message* message);

// Why `bytes` did not parse as a `type`.
absl::Status ExplainParseFailure(absl::string_view bytes,
                                 const google::protobuf::Descriptor& type);

// For a message that did not parse: the same bytes but every entry of the
// repeated message field `number` at the top level that contains a text which
// is not UTF-8 is emptied; *bad has their indexes and errors (those of
// ParseMessage). False: the bytes are invalid in another way, or more than
// `most` entries are.
bool EmptyInvalidEntries(const grpc::ByteBuffer& bytes,
                         const google::protobuf::Descriptor& type, int number,
                         int64_t most, std::string* mended,
                         std::vector<InputFault>* bad);

// REQUEST_TOO_LARGE (reply_bytes, limit) for an answer above max_bytes. field:
// "inputs", or empty for a request without inputs.
absl::Status CheckAnswerSize(int64_t bytes, int64_t max_bytes,
                             absl::string_view field);

// One copy: the message straight into what gRPC sends.
grpc::ByteBuffer SerializeMessage(const google::protobuf::Message& message);
// The same for an answer, if CheckAnswerSize lets it.
absl::Status SerializeAnswer(const google::protobuf::Message& answer,
                             int64_t max_bytes, absl::string_view field,
                             grpc::ByteBuffer* bytes);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_WIRE_H_
