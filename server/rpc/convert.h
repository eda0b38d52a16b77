// Requests of the contract -> requests of the pipeline. Counts, options and
// token ids are checked here, before anything is spent on a request; what only
// tokenising shows (a text's length) the pipeline checks.
//
// Thread-safe: plain functions. Errors: INVALID_ARGUMENT and NOT_FOUND with an
// ErrorDetail, all inputs at fault listed. Texts are moved out of the messages,
// not copied. No error repeats a text.
#ifndef ENCODERD_SERVER_RPC_CONVERT_H_
#define ENCODERD_SERVER_RPC_CONVERT_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "encoderd/v1/encoder.pb.h"
#include "engine/base/quantize.h"
#include "engine/model.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/pipeline.h"

namespace encoderd {

struct RequestLimits {
  int32_t max_inputs = 0;  // of one request
  int64_t max_message_bytes = 0;
  // Of the lists of all TokenIds of one request together.
  int64_t max_list_values = std::numeric_limits<int64_t>::max();
};

// NO_INPUTS, TOO_MANY_INPUTS.
absl::Status CheckInputCount(int64_t count, const RequestLimits& limits);

v1::Pooling PoolingToProto(Pooling pooling);

// What an Embed call asks for beyond the pipeline's part.
struct EmbedPlan {
  PipelineRequest request;
  int32_t dimensions = 0;  // 1 .. H
  bool packed = false;     // as bytes; false: a list of floats
  VectorFormat format = VectorFormat::kFloat32;
  ByteRanges ranges;
};

// The pipeline request's deadline is left to the caller, here and below.
// special_tokens: those that the tokenizer adds to a text. bad_texts: inputs
// that are not UTF-8, by index (request.h): with PER_INPUT they and the other
// inputs at fault go on as RefusedInput.
absl::StatusOr<EmbedPlan> ConvertEmbed(const ModelInfo& model,
                                       int32_t special_tokens,
                                       const RequestLimits& limits,
                                       v1::EmbedRequest* request,
                                       std::vector<InputFault> bad_texts = {});

absl::StatusOr<PipelineRequest> ConvertEncode(
    const ModelInfo& model, const RequestLimits& limits,
    v1::EncodeRequest* request, std::vector<InputFault> bad_texts = {});

// No limit on an input's length: nothing is computed.
absl::StatusOr<std::vector<PipelineInput>> ConvertTokenize(
    const ModelInfo& model, const RequestLimits& limits,
    v1::TokenizeRequest* request);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_CONVERT_H_
