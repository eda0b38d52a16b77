// The encoder in double precision, loop by loop as the papers write it; slow.
#ifndef ENCODERD_TESTS_SUPPORT_REFERENCE_ENCODER_H_
#define ENCODERD_TESTS_SUPPORT_REFERENCE_ENCODER_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/base/batch.h"
#include "engine/base/pooling.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/session.h"

namespace encoderd {

class ReferenceEncoder {
 public:
  // What becomes of the `count` values of a row that feed-forward-in
  // multiplies.
  using RoundRow = std::function<void(double* row, int64_t count)>;

  // Reads every layer; `source` must not fail. round: of the rows of x and
  // of weights; empty: none are rounded.
  ReferenceEncoder(const ModelConfig& config, WeightSource* source,
                   RoundRow round = {});

  // States [n,H] of `layer` for one sequence: 0 is the embedding block's own,
  // kTableSum the sum before its LayerNorm.
  std::vector<double> States(const TokenSequence& sequence,
                             int32_t layer) const;
  // Pooled, and divided by its norm if asked.
  std::vector<double> Pooled(const TokenSequence& sequence, Pooling pooling,
                             bool normalize) const;

 private:
  using Rows = std::vector<double>;
  Rows Rounded(Rows rows, int64_t cols) const;
  Rows Linear(const Rows& x, const LinearWeights& weights,
              bool rounded = false) const;
  void AddNorm(const Rows& x, const NormWeights& norm, Rows* y) const;
  void Rotate(const TokenSequence& sequence, const Rotation& rotation,
              Rows* qkv) const;
  Rows Attention(const Rows& qkv, int64_t n, const Reach& reach) const;
  Rows FeedForward(const Rows& x, const LayerWeights& weights) const;
  // What a layer adds: of attention, to the states x, of which it reads n.
  Rows AttentionHalf(const TokenSequence& sequence, int32_t layer,
                     const Rows& n) const;

  const ModelConfig config_;
  const RoundRow round_;
  const OuterWeights outer_;
  const HostMatrix token_;  // of outer_, as floats
  const HostMatrix position_;
  const HostMatrix segment_;
  std::vector<LayerWeights> layers_;
};

// Cosine and largest difference of a result from its reference.
double Cosine(const float* got, const std::vector<double>& want);
double MaxDifference(const float* got, const std::vector<double>& want);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_REFERENCE_ENCODER_H_
