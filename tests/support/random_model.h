// A checkpoint of random weights of any shape, and random inputs for it.
//
// Weights are such that states stay near 1 and attention is neither flat nor a
// single token. The same shape and seed give the same values.
#ifndef ENCODERD_TESTS_SUPPORT_RANDOM_MODEL_H_
#define ENCODERD_TESTS_SUPPORT_RANDOM_MODEL_H_

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "engine/base/batch.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/weight_source.h"

namespace encoderd {

struct RandomShape {
  int32_t layers = 2;
  int32_t hidden = 64;
  int32_t heads = 4;
  int32_t inner = 128;  // F
  int32_t vocabulary = 101;
  int32_t positions = 64;
  int32_t segments = 2;
  Activation activation = Activation::kGeluErf;
  int32_t embedding = 0;        // E; 0: hidden, and no projection
  int32_t distinct_layers = 0;  // shared by `layers`; 0: none are shared
  bool relative_bias = false;   // as MPNet has it
  bool pre_norm = false;
  bool outer_norms =
      true;  // of the embedding; pre-norm, of the first layer too
  bool gated = false;
  std::vector<Reach> reaches;  // of the layers in turn; empty: full
  std::vector<double> thetas;  // rotary, of the layers in turn; empty: learned
};

ModelConfig RandomConfig(const RandomShape& shape);
IdLimits RandomLimits(const RandomShape& shape);

std::unique_ptr<WeightSource> RandomCheckpoint(const RandomShape& shape,
                                               uint32_t seed);

// A sequence of `length` random ids within `limits`.
TokenSequence RandomSequence(int32_t length, const IdLimits& limits,
                             std::mt19937* random);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_RANDOM_MODEL_H_
