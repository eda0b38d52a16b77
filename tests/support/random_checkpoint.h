// Model folders of random weights, the same bits everywhere; the C++ twin of
// random_checkpoint.py, where the rule is written down. Shapes are in
// checkpoints.json, names in engine/checkpoint/architectures.json.
#ifndef ENCODERD_TESTS_SUPPORT_RANDOM_CHECKPOINT_H_
#define ENCODERD_TESTS_SUPPORT_RANDOM_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/safetensors_writer.h"

namespace encoderd {

struct CheckpointSpec {
  std::string name;
  uint64_t seed = 0;
  std::string dtype = "F32";  // F32, F16, BF16
  std::string prefix;         // before every tensor's name
  int shards = 1;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t inner = 0;
  int64_t vocab = 0;  // at least 77
  int64_t positions = 0;
  int64_t segments = 0;  // 0: no segment table
  std::string act;
  double eps = 0;
  std::string pooling;  // as in engine/base/pooling.h
  bool normalize = false;
  std::string model_type = "bert";
  std::string config = "{}";  // more of config.json, an object
};

// All of checkpoints.json; ends the program when it cannot be read.
std::vector<CheckpointSpec> AllCheckpointSpecs();
// One of them; ends the program when there is none of this name.
CheckpointSpec CheckpointSpecOf(const std::string& name);

// The tensors in the file's order, prefix included.
std::vector<TensorToWrite> CheckpointTensors(const CheckpointSpec& spec);

// Writes config.json, modules.json, 1_Pooling, vocab.txt,
// tokenizer_config.json and the weights into `folder`.
void WriteCheckpoint(const CheckpointSpec& spec, const std::string& folder);
// The weights alone, from tensors that a test may have changed.
void WriteWeights(const std::vector<TensorToWrite>& tensors, int shards,
                  const std::string& folder);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_RANDOM_CHECKPOINT_H_
