// What the engine does around a device: packing before it, pooling after it.
#include <algorithm>

#include "engine/base/pooling.h"
#include "tests/instructions/hot_path.h"

namespace encoderd {
namespace {

constexpr int kHiddenSize = 384;

class PackPath final : public HotPath {
 public:
  PackPath() : sequences_(FixedSequences(4096)) {
    limits_.token_rows = 30522;
    limits_.segment_rows = 2;
    limits_.position_rows = limits_.max_len = 512;
  }

  int64_t Run() override {
    int64_t figure = 0;
    for (size_t first = 0; first < sequences_.size(); first += kBatch) {
      batch_.Clear();
      for (size_t i = first; i < first + kBatch; ++i) {
        Require(ValidateSequence(sequences_[i], limits_).ok(),
                "a sequence is invalid");
        batch_.Append(sequences_[i], limits_);
      }
      Require(ValidateBatch(batch_, limits_).ok(), "a batch is invalid");
      figure += batch_.num_tokens() + batch_.max_seqlen;
    }
    return figure;
  }

 private:
  static constexpr size_t kBatch = 64;

  const std::vector<TokenSequence> sequences_;
  IdLimits limits_;
  PackedBatch batch_;
};

class PoolingPath final : public HotPath {
 public:
  PoolingPath() : states_(FixedValues(kTokens * kHiddenSize)) {}

  int64_t Run() override {
    double figure = 0;
    for (int64_t tokens = 1; tokens <= kTokens; ++tokens) {
      for (const Pooling pooling :
           {Pooling::kCls, Pooling::kMean, Pooling::kMax, Pooling::kMeanSqrtLen,
            Pooling::kWeightedMean, Pooling::kLastToken}) {
        PoolStates(pooling, states_.data(), tokens, kHiddenSize, vector_);
        NormalizeL2(vector_, kHiddenSize);
        figure += *std::max_element(vector_, vector_ + kHiddenSize);
      }
    }
    return static_cast<int64_t>(figure * 1000);
  }

 private:
  static constexpr int64_t kTokens = 64;

  const std::vector<float> states_;
  float vector_[kHiddenSize];
};

}  // namespace

HotPathPtr MakePackPath() { return std::make_unique<PackPath>(); }
HotPathPtr MakePoolingPath() { return std::make_unique<PoolingPath>(); }

}  // namespace encoderd
