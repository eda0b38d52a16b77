// The methods of encoderd.v1.Encoder, one class each: parse, convert, submit;
// the answer is made where the pipeline reports its result.
#ifndef ENCODERD_SERVER_RPC_CALLS_H_
#define ENCODERD_SERVER_RPC_CALLS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/rpc/embed_job.h"
#include "server/rpc/unary_call.h"

namespace encoderd {

class EmbedCall final : public UnaryCall {
 public:
  using UnaryCall::UnaryCall;

 private:
  absl::Status Handle(const grpc::ByteBuffer& request) override;
  absl::Status Reply(absl::StatusOr<PipelineResult> result);

  std::optional<EmbedJob> job_;  // constant once submitted
};

class EncodeCall final : public UnaryCall {
 public:
  using UnaryCall::UnaryCall;

 private:
  absl::Status Handle(const grpc::ByteBuffer& request) override;
  absl::Status Reply(absl::StatusOr<PipelineResult> result);

  const ServedModel* model_ = nullptr;
  std::string request_id_;
  uint32_t columns_ = 0;  // of every input's states, also where it has no rows
};

class TokenizeCall final : public UnaryCall {
 public:
  using UnaryCall::UnaryCall;

 private:
  absl::Status Handle(const grpc::ByteBuffer& request) override;
  absl::Status Reply(absl::StatusOr<std::vector<Encoding>> result);

  const ServedModel* model_ = nullptr;
};

class ListModelsCall final : public UnaryCall {
 public:
  using UnaryCall::UnaryCall;

 private:
  absl::Status Handle(const grpc::ByteBuffer& request) override;
};

class GetModelCall final : public UnaryCall {
 public:
  using UnaryCall::UnaryCall;

 private:
  absl::Status Handle(const grpc::ByteBuffer& request) override;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_CALLS_H_
