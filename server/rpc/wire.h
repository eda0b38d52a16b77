// Bytes to messages and back. After a failed parse: which text is not UTF-8, or
// that the bytes are no message at all. Thread-safe: plain functions.
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

// The string of field `number` at the top level (the last one, as the parser
// takes it), of bytes that may be no message; only the first kMaxFields fields
// (parse_cost.h) are looked at. Empty: there is none, it is longer than
// max_bytes, or it is not UTF-8.
std::string FindString(const grpc::ByteBuffer& bytes, int number,
                       size_t max_bytes);

// Parses `bytes`; `message` is of the type that the method takes. Errors:
// those of CheckParseCost (parse_cost.h) and of ParseChecked.
absl::Status ParseMessage(const grpc::ByteBuffer& bytes,
                          google::protobuf::Message* message);

// The same for bytes that passed CheckParseCost. Errors: INVALID_ARGUMENT,
// INVALID_UTF8 (field; byte_offset; input_index where an input is to blame) or
// MALFORMED_MESSAGE.
absl::Status ParseChecked(const grpc::ByteBuffer& bytes,
                          google::protobuf::Message* message);

// Why `bytes` did not parse as a `type`.
absl::Status ExplainParseFailure(absl::string_view bytes,
                                 const google::protobuf::Descriptor& type);

// For a message that did not parse: the same bytes with every entry of the
// repeated message field `number` at the top level that holds a text which is
// not UTF-8 made empty; *bad has their indexes and errors (those of
// ParseMessage). False: the bytes make no sense otherwise.
bool EmptyInvalidEntries(const grpc::ByteBuffer& bytes,
                         const google::protobuf::Descriptor& type, int number,
                         std::string* mended, std::vector<InputFault>* bad);

// Keeps the Protobuf library from writing a line of its own to standard error
// for each text that is not UTF-8: callers must not be able to fill the log.
// Where the library has no such switch (from version 22 on), does nothing.
void QuietProtobuf();

// REQUEST_TOO_LARGE (reply_bytes, limit) for an answer above max_bytes. field:
// "inputs", or empty for a request that has none.
absl::Status CheckAnswerSize(const google::protobuf::Message& answer,
                             int64_t max_bytes, absl::string_view field);

// One copy: the message straight into what gRPC sends.
grpc::ByteBuffer SerializeMessage(const google::protobuf::Message& message);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_WIRE_H_
