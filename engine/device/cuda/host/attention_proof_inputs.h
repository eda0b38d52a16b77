// What attention_proof.h runs a path on. Pure; the same for every build.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_ATTENTION_PROOF_INPUTS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_ATTENTION_PROOF_INPUTS_H_

#include <cstdint>
#include <vector>

#include "engine/device/cuda/host/attention_work.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {

struct AttentionProofInputs {
  int32_t heads = 0;
  int64_t hidden = 0;
  std::vector<int32_t> lengths;  // the path's shortest and longest among them
  std::vector<int32_t> ends = {0};
  std::vector<uint16_t> qkv;  // [T,3H]
  std::vector<float> bias;    // [heads,bias_stride]
  int32_t bias_stride = 0;
  // The path's entries, one a sequence; the general path's, general_work of
  // them; and the path's for each sequence as if it began at row 0.
  std::vector<AttentionWork> work;
  int64_t general_work = 0;

  int64_t sequences() const { return static_cast<int64_t>(lengths.size()); }
  int64_t tokens() const { return ends.back(); }
};

// element: of 16 bits. heads: of the model; at least one.
AttentionProofInputs MakeAttentionProofInputs(DType element, int32_t head_size,
                                              int32_t heads,
                                              AttentionPath path);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_ATTENTION_PROOF_INPUTS_H_
