// Between the bytes of the contract and the plain requests and answers of
// server/api. It checks only the wire format: texts that are not UTF-8 and
// inputs without content become RefusedInput, choices keep their numbers, ids
// their bits. Thread-safe: plain functions.
#ifndef ENCODERD_SERVER_RPC_CONVERT_H_
#define ENCODERD_SERVER_RPC_CONVERT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "encoderd/v1/encoder.pb.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/api/embed.h"
#include "server/api/encode.h"
#include "server/api/inspect.h"
#include "server/api/tokenize.h"
#include "server/rpc/call_environment.h"

namespace encoderd {

// Bytes -> request, counted before they are parsed, because each input costs
// memory however small it is. Texts are moved out of the message, not copied.
// Errors: those of CheckParseCost and ParseChecked (wire.h), TOO_MANY_INPUTS;
// the API checks for an empty list. For Tokenize, the first text that is not
// UTF-8 fails the whole request.
absl::Status Read(const CallEnvironment& environment,
                  const grpc::ByteBuffer& bytes, EmbedRequest* request);
absl::Status Read(const CallEnvironment& environment,
                  const grpc::ByteBuffer& bytes, EncodeRequest* request);
absl::Status Read(const CallEnvironment& environment,
                  const grpc::ByteBuffer& bytes, TokenizeRequest* request);
absl::Status Read(const CallEnvironment& environment,
                  const grpc::ByteBuffer& bytes, InspectRequest* request);

// What is sent, and what is to be counted when it is.
struct WrittenAnswer {
  grpc::ByteBuffer bytes;
  std::vector<std::string> rejected;  // reasons of its inputs' errors
};

// Result -> answer, empty before. The error of an input is published like that
// of a call. REQUEST_TOO_LARGE: above limits.max_answer_bytes. May throw if
// there is no memory.
absl::Status Write(const CallEnvironment& environment, const EmbedJob& job,
                   PipelineResult result, WrittenAnswer* written);
absl::Status Write(const CallEnvironment& environment, const EncodeJob& job,
                   PipelineResult result, WrittenAnswer* written);
absl::Status Write(const CallEnvironment& environment, const TokenizeJob& job,
                   PipelineResult result, WrittenAnswer* written);
absl::Status Write(const CallEnvironment& environment, const InspectJob& job,
                   const InspectAnswer& result, WrittenAnswer* written);

// The answer to a request of EmbedStream that failed.
grpc::ByteBuffer WriteError(const std::string& request_id,
                            const absl::Status& published);

// What GetModel reports about a model.
void Fill(const ServedModel& served, const RequestLimits& limits,
          v1::Model* model);
v1::MaxLenSource ToProto(MaxLenSource source);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_CONVERT_H_
