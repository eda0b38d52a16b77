// The size of a model's weights, known before they are loaded.
#ifndef ENCODERD_ENGINE_CHECKPOINT_WEIGHT_BYTES_H_
#define ENCODERD_ENGINE_CHECKPOINT_WEIGHT_BYTES_H_

#include <cstdint>
#include <string>

namespace encoderd {

// Bytes of the tensors in the weight files of the model in `folder`: those of
// its transformer, of which the load may ignore some, and of the modules after
// pooling. Reads the files' headers alone, and compares nothing with
// SHA256SUMS. 0 if a file cannot be read: Model::Load says why. Throws nothing.
int64_t WeightBytes(const std::string& folder);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_WEIGHT_BYTES_H_
