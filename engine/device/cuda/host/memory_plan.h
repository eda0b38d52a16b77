// How many bytes of a card a model and one of its Sessions take, computed
// before anything is allocated. Pure functions.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_MEMORY_PLAN_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_MEMORY_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/base/tensor.h"
#include "engine/device/cuda/products/products.h"
#include "engine/device/device.h"

namespace encoderd {
namespace cuda {

// Tables and weights in `dtype`, those that bear 8 bits in `operands`; biases
// and norms as the kernels want them.
int64_t ModelBytes(const std::vector<WeightSize>& weights, DType dtype,
                   Operands operands = Operands::kElement);

// What a batch is sent as, in one copy: its ids, attention's work list, the
// rows that are picked and pooling's work list, in bytes from the start; each
// begins at a multiple of 256. A batch with less of each takes no more bytes.
struct BatchLayout {
  int64_t token_ids = 0;
  int64_t position_ids = 0;
  int64_t segment_ids = 0;
  int64_t attention_work = 0;
  int64_t picked_rows = 0;
  int64_t pool_work = 0;
  int64_t bytes = 0;
};
BatchLayout LayOutBatch(int64_t rows, int64_t attention_work,
                        int64_t picked_rows, int64_t pool_work);

// An Executor's memory, in bytes.
struct SessionPlan {
  int64_t batch_bytes = 0;
  int64_t output_bytes = 0;  // results as floats
  // What Allocate will be asked for: states, Q|K|V, context, the projection
  // and the feed-forward layer's inner rows.
  int64_t activation_bytes = 0;
  int64_t quantized_bytes = 0;  // rows of states in e4m3, if products take them
  int64_t workspace_bytes = 0;  // of products

  int64_t device_bytes() const {
    return batch_bytes + output_bytes + activation_bytes + quantized_bytes +
           workspace_bytes;
  }
  int64_t pinned_bytes() const { return batch_bytes + output_bytes; }
};
// Buckets of CUDA graphs (graph_bucket.h) need no more: they keep within the
// limits. What CUDA itself takes for a graph is not in it.
SessionPlan PlanSession(const ExecutorLimits& limits, DType dtype,
                        int64_t workspace_bytes,
                        Operands operands = Operands::kElement);

// OK, or RESOURCE_EXHAUSTED with the numbers: the model and `sessions` of its
// Sessions must fit in what is free. remedy: what makes it smaller.
absl::Status CheckMemory(int64_t model_bytes, int64_t session_bytes,
                         int32_t sessions, int64_t free_bytes,
                         absl::string_view remedy =
                             "fewer threads, a smaller max_batch_tokens or a "
                             "16-bit dtype");

// "1.2 GiB": for people.
std::string BytesText(int64_t bytes);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_MEMORY_PLAN_H_
