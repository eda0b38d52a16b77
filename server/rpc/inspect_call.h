// InspectPositions: a range of the position table, measured on a tokenizer
// thread, because a cosine matrix takes longer than a gRPC thread may.
#ifndef ENCODERD_SERVER_RPC_INSPECT_CALL_H_
#define ENCODERD_SERVER_RPC_INSPECT_CALL_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "encoderd/v1/encoder.pb.h"
#include "server/rpc/unary_call.h"

namespace encoderd {

inline constexpr int64_t kMaxInspectedRows = 1024;  // of one call

struct RowRange {
  int64_t first = 0;
  int64_t count = 0;
};

// The rows that a request asks for of a table of `rows`. INVALID_ARGUMENT:
// ROWS_OUT_OF_RANGE; INVALID_OPTION for more than kMaxInspectedRows.
absl::StatusOr<RowRange> ConvertInspect(
    int64_t rows, const v1::InspectPositionsRequest& request);

class InspectPositionsCall final : public UnaryCall {
 public:
  using UnaryCall::UnaryCall;

 private:
  absl::Status Handle(const grpc::ByteBuffer& request) override;
  absl::Status Reply();
  int64_t LeastBytes() const;  // of the answer: what makes it large

  // Constant once submitted.
  const ServedModel* model_ = nullptr;
  RowRange range_;
  bool cosine_ = false;
  bool values_ = false;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_INSPECT_CALL_H_
