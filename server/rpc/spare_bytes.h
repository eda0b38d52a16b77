// Bytes of a message that nobody will read, counted before the parser sees
// them.
//
// The parser keeps fields that it does not know, each at many times its bytes
// on the wire, and never frees the earlier ones of a singular field that comes
// again: 16 MiB of two-byte fields become 480 MB. A few are the normal case of
// a newer client; more than kMaxSpareBytes are an attack. Thread-safe: plain
// functions.
#ifndef ENCODERD_SERVER_RPC_SPARE_BYTES_H_
#define ENCODERD_SERVER_RPC_SPARE_BYTES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/support/byte_buffer.h"

namespace encoderd {

inline constexpr int64_t kMaxSpareBytes = 64 << 10;

// Bytes, tags included, of fields that a `type` does not have, or has with
// another wire type, and of every further entry of a field that is not
// repeated; at every depth. Counts up to the first byte that makes no sense,
// and little further than kMaxSpareBytes.
int64_t CountSpareBytes(const grpc::ByteBuffer& bytes,
                        const google::protobuf::Descriptor& type);

// INVALID_ARGUMENT, MALFORMED_MESSAGE (limit) above kMaxSpareBytes.
absl::Status CheckSpareBytes(const grpc::ByteBuffer& bytes,
                             const google::protobuf::Descriptor& type);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_SPARE_BYTES_H_
