// Parts of an answer that several methods share. Thread-safe: plain functions.
#ifndef ENCODERD_SERVER_RPC_ANSWER_H_
#define ENCODERD_SERVER_RPC_ANSWER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "encoderd/v1/encoder.pb.h"
#include "engine/base/quantize.h"
#include "google/rpc/status.pb.h"
#include "server/observe/metrics.h"
#include "server/pipeline/pipeline.h"

namespace encoderd {

// Bytes of one input's error: a thousand of them fit into an answer.
inline constexpr int kMaxInputErrorBytes = 1024;

void SetUsage(const PipelineResult& result, v1::Usage* usage);

// WriteVector into a message's bytes.
float PackVector(VectorFormat format, const ByteRanges& ranges,
                 absl::Span<const float> values, std::string* bytes);

// The error of one input of an answer that is OK, as the call's own would be;
// published and counted as it would be, too.
google::rpc::Status InputError(const absl::Status& status, Metrics* metrics);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_ANSWER_H_
