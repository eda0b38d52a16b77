// The methods of encoderd.v1.Encoder, one class each: parse, convert, submit;
// the answer is made where the pipeline reports its result.
#ifndef ENCODERD_SERVER_RPC_CALLS_H_
#define ENCODERD_SERVER_RPC_CALLS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "server/rpc/unary_call.h"

namespace encoderd {

class EmbedCall final : public UnaryCall {
 public:
  using UnaryCall::UnaryCall;

 private:
  absl::Status Handle(const grpc::ByteBuffer& request) override;
  absl::Status Reply(absl::StatusOr<PipelineResult> result);

  // Constant once submitted.
  const ServedModel* model_ = nullptr;
  std::string request_id_;
  int32_t dimensions_ = 0;
  bool normalize_ = false;
  bool packed_ = false;
};

class EncodeCall final : public UnaryCall {
 public:
  using UnaryCall::UnaryCall;

 private:
  absl::Status Handle(const grpc::ByteBuffer& request) override;
  absl::Status Reply(absl::StatusOr<PipelineResult> result);

  const ServedModel* model_ = nullptr;
  std::string request_id_;
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

// Little-endian float32 whatever the machine is.
void PackFloats(const float* values, int64_t count, std::string* bytes);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_CALLS_H_
