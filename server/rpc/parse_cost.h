// What a message would cost, counted before the parser sees it.
//
// The parser pays for each field and each value of a list, however few bytes
// they are: 16 MiB hold 8 million empty lists, or a list of 16 million numbers
// that takes 200 MB. Fields that it does not know it keeps, each at many times
// its bytes on the wire, and it never frees the earlier ones of a singular
// field that comes again: 16 MiB of two-byte fields become 480 MB. A few of
// those are the normal case of a newer client; more than kMaxSpareBytes are an
// attack. Thread-safe: plain functions.
#ifndef ENCODERD_SERVER_RPC_PARSE_COST_H_
#define ENCODERD_SERVER_RPC_PARSE_COST_H_

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/support/byte_buffer.h"

namespace encoderd {

inline constexpr int64_t kMaxSpareBytes = 64 << 10;
// Of one message. Generated code writes a list as one field, so that a request
// of a thousand inputs has some thousands; enough for code that writes each id
// of a few hundred thousand as a field of its own.
inline constexpr int64_t kMaxFields = 1 << 20;

struct ParseCost {
  int64_t fields = 0;       // at every depth
  int64_t entries = 0;      // of repeated fields of the message itself
  int64_t list_values = 0;  // varints of repeated fields, at every depth
  // Bytes, tags included, of fields that the type does not have, or has with
  // another wire type, and of every further entry of a field that is not
  // repeated; at every depth.
  int64_t spare_bytes = 0;
};

struct ParseLimits {
  int64_t max_fields = kMaxFields;
  int64_t max_list_values = std::numeric_limits<int64_t>::max();
};

// Counts up to the first byte that makes no sense, which is as far as the
// parser gets, and little further than max_fields or kMaxSpareBytes.
ParseCost CountParseCost(const grpc::ByteBuffer& bytes,
                         const google::protobuf::Descriptor& type,
                         int64_t max_fields = kMaxFields);

// INVALID_ARGUMENT: MALFORMED_MESSAGE (limit) above kMaxSpareBytes,
// REQUEST_TOO_LARGE (limit; list_values) above `limits`. *cost, if given, is
// what was counted.
absl::Status CheckParseCost(const grpc::ByteBuffer& bytes,
                            const google::protobuf::Descriptor& type,
                            const ParseLimits& limits = {},
                            ParseCost* cost = nullptr);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_PARSE_COST_H_
