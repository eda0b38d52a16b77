// The size of a model's weights, known before they are read.
#ifndef ENCODERD_SERVER_WEIGHT_FILES_H_
#define ENCODERD_SERVER_WEIGHT_FILES_H_

#include <cstdint>
#include <string>

namespace encoderd {

// Bytes of model.safetensors or else of its shards (model-*.safetensors), in
// `folder` or, where older sentence-transformers put them, in a folder 0_* of
// it. 0 if there are none, or they cannot be seen: the load says why.
int64_t WeightFileBytes(const std::string& folder);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_WEIGHT_FILES_H_
