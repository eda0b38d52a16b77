// Between the messages of the contract and the plain requests and answers of
// server/api. It checks only the wire format: texts that are not UTF-8 and
// inputs without content become RefusedInput, choices keep their numbers, ids
// their bits. Thread-safe: plain functions.
#ifndef ENCODERD_SERVER_RPC_CONVERT_H_
#define ENCODERD_SERVER_RPC_CONVERT_H_

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

// Result -> message; takes the values. The error of an input is published and
// counted like that of a call. The size of an answer is checked where it is
// sent, except for tokens, whose answer grows most while it is built:
// REQUEST_TOO_LARGE. May throw if there is no memory.
absl::Status Fill(const CallEnvironment& environment, const EmbedJob& job,
                  PipelineResult result, v1::EmbedResponse* response);
absl::Status Fill(const CallEnvironment& environment, const EncodeJob& job,
                  PipelineResult result, v1::EncodeResponse* response);
absl::Status Fill(const CallEnvironment& environment, const TokenizeJob& job,
                  PipelineResult result, v1::TokenizeResponse* response);
absl::Status Fill(const CallEnvironment& environment, const InspectJob& job,
                  const InspectAnswer& answer,
                  v1::InspectPositionsResponse* response);

// What GetModel reports about a model.
void Fill(const ServedModel& served, const RequestLimits& limits,
          v1::Model* model);
v1::MaxLenSource ToProto(MaxLenSource source);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_CONVERT_H_
