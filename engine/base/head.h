// The modules of sentence-transformers after pooling: Dense, LayerNorm and
// Normalize, in their order, in fp32 on the host whatever the device and dtype.
// A vector's bits depend on its own pooled vector only. Constant after
// construction and shared by all threads.
#ifndef ENCODERD_ENGINE_BASE_HEAD_H_
#define ENCODERD_ENGINE_BASE_HEAD_H_

#include <cstdint>
#include <string>
#include <vector>

namespace encoderd {

// The content of a module's files.
struct HeadModule {
  enum class Kind {
    kDense,      // y [out] = activation(W [out,in] x + b)
    kLayerNorm,  // y = (x - mean) / sqrt(var + 1e-5) * gain + bias; in == out
    kNormalize,  // y = x / |x|; in == out
  };
  Kind kind = Kind::kNormalize;
  std::string folder;  // below the model folder: "2_Dense"
  int32_t in = 0;
  int32_t out = 0;
  bool bias = true;   // kDense
  bool tanh = false;  // kDense: Tanh, else Identity
};

class Head {
 public:
  struct Layer {
    HeadModule module;
    std::vector<float> weight;  // kDense [out,in]; kLayerNorm [in]
    std::vector<float> bias;    // [out]; empty: none
  };

  // At least one layer; each takes the output of the preceding one.
  explicit Head(std::vector<Layer> layers);

  int32_t in() const { return layers_.front().module.in; }
  int32_t out() const { return layers_.back().module.out; }
  // The largest number of values between two layers.
  int32_t widest() const { return widest_; }

  // x holds [in] values at first, [out] at the end; x and y have room for
  // `widest` values and do not overlap.
  void Apply(std::vector<float>* x, std::vector<float>* y) const;

 private:
  const std::vector<Layer> layers_;
  int32_t widest_ = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_BASE_HEAD_H_
