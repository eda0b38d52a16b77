// Weights on the host, as a Device prepares them: plain values. Sizes: V, P and
// S rows of the tables, E their columns.
#ifndef ENCODERD_ENGINE_DEVICE_WEIGHTS_H_
#define ENCODERD_ENGINE_DEVICE_WEIGHTS_H_

#include <vector>

#include "engine/base/tensor.h"

namespace encoderd {

// y = (x - mean) / sqrt(var + eps) * gain + bias
struct NormWeights {
  std::vector<float> gain;  // one for each column
  std::vector<float> bias;
};

// y = x weight^T + bias
struct LinearWeights {
  HostMatrix weight;        // [out, in], as checkpoints keep it
  std::vector<float> bias;  // [out]
  // May be multiplied in fp8 where the device is asked for it
  // (Device::products).
  bool allow_fp8 = false;
  // The same in int8.
  bool allow_int8 = false;
  // A residual is added to y: a device may do that in the product.
  bool residual_follows = false;
};

struct EmbeddingWeights {
  HostTable token;     // [V,E]
  HostTable position;  // [P,E]; zero rows: the scheme adds nothing here
  HostTable segment;   // [S,E]; zero rows: the model has no segments
  NormWeights norm;    // [E]; empty: the sums stay as they are
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_WEIGHTS_H_
