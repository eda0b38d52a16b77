// The cost of a message, counted before the parser sees it.
//
// The parser pays for each field and each value of a list, however few bytes
// they have: 16 MiB hold 8 million empty lists, or a list of 16 million numbers
// that takes 200 MB. It keeps unknown fields, each at many times its bytes on
// the wire, and never frees earlier occurrences of a repeated singular field:
// 16 MiB of two-byte fields become 480 MB. A few of those are normal for a
// newer client; more than kMaxSpareBytes are an attack. Of a number above 32
// bits it takes the lower ones, and so another number. Thread-safe: plain
// functions.
#ifndef ENCODERD_SERVER_RPC_PARSE_COST_H_
#define ENCODERD_SERVER_RPC_PARSE_COST_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/support/byte_buffer.h"

namespace encoderd {

inline constexpr int64_t kMaxSpareBytes = 64 << 10;
// Per message. Generated code writes a list as one field, so a request of a
// thousand inputs has a few thousand; this is enough for code that writes each
// of a few hundred thousand ids as a separate field.
inline constexpr int64_t kMaxFields = 1 << 20;

struct ParseCost {
  int64_t fields = 0;       // at every depth
  int64_t entries = 0;      // of repeated fields of the message itself
  int64_t list_values = 0;  // varints of repeated fields, at every depth
  // Bytes, tags included, of unknown fields, of fields with another wire type,
  // and of every further entry of a field that is not repeated; at every depth.
  int64_t spare_bytes = 0;
  // The first number that its field cannot hold; of a packed list the largest.
  struct TooLarge {
    std::string field;  // its path: inputs[3].tokens.ids
    uint64_t value = 0;
  };
  std::optional<TooLarge> too_large;
};

struct ParseLimits {
  int64_t max_fields = kMaxFields;
  int64_t max_list_values = std::numeric_limits<int64_t>::max();
};

// Counts up to the first invalid byte, which is as far as the parser gets, and
// little further than max_fields or kMaxSpareBytes.
ParseCost CountParseCost(const grpc::ByteBuffer& bytes,
                         const google::protobuf::Descriptor& type,
                         int64_t max_fields = kMaxFields);

// INVALID_ARGUMENT: MALFORMED_MESSAGE (limit) above kMaxSpareBytes,
// REQUEST_TOO_LARGE (limit; list_values) above `limits`, INVALID_OPTION (value,
// limit) for a number above 32 bits. *cost, if not null, is the count.
absl::Status CheckParseCost(const grpc::ByteBuffer& bytes,
                            const google::protobuf::Descriptor& type,
                            const ParseLimits& limits = {},
                            ParseCost* cost = nullptr);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_PARSE_COST_H_
