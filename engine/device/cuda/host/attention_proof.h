// Whether a path of attention may serve on a device: it is compared with the
// general path on fixed inputs whose values spread over many powers of two,
// rows of softmax from flat to one key alone among them, at the lengths around
// its borders, in company and alone.
//
// Thread rule: any thread that chose the device (Runtime::UseDevice); waits for
// the stream, which nothing else uses meanwhile. Takes at most 1 MiB of the
// device and half of one pinned, given back before it returns.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_ATTENTION_PROOF_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_ATTENTION_PROOF_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "engine/device/cuda/attention_path.h"
#include "engine/device/cuda/ops.h"
#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

// "whole64", for people.
const char* PathName(AttentionPath path);

using AttentionStart = std::function<int(const AttentionOp&, const OpStream&)>;
inline constexpr int (*kStartAttention)(const AttentionOp&,
                                        const OpStream&) = &Start;

// OK where every value is within the bound (attention_proof.cc) of the general
// path's and, of a limited reach, whose limits the paths read alike, of the
// formula's (attention_formula.h), and a sequence has the same bits alone as in
// company; also where there is nothing to prove: the general path, or one that
// takes no such heads. INTERNAL, with both figures, where not; else as memory.h
// says. figures: set in either case, "largest difference 0.31 of the bound".
// heads: of the model; fewer are computed. fast, general: what starts the
// paths, for tests.
absl::Status ProveAttention(Runtime* runtime, DType element, int32_t head_size,
                            int32_t heads, bool biased, const Reach& reach,
                            AttentionPath path, Stream stream,
                            std::string* figures,
                            const AttentionStart& fast = kStartAttention,
                            const AttentionStart& general = kStartAttention);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_ATTENTION_PROOF_H_
