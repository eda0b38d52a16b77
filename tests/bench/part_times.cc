// How long the largest parts of a layer take when one text is shared by many
// cores, in fp32: each part is computed alone, on one core, with weights that
// are in no near cache. What many cores cost each other, in bandwidth and in
// waiting, is not in it.
//   part_times [hidden_size heads]: of BERT's shape; MiniLM's without
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "engine/device/cpu/cpu_info.h"
#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/op_parts.h"
#include "engine/device/cpu/product.h"

namespace encoderd {
namespace cpu {
namespace {

constexpr int64_t kMostTokens = 512;
constexpr int64_t kWeightBytes = 128 << 20;  // of all copies of a layer

const Kernels& BestKernels() {
  const Kernels* kernels = nullptr;
  if (DetectIsa() >= Isa::kAvx512) kernels = Avx512Kernels(DType::kF32);
  if (kernels == nullptr && DetectIsa() >= Isa::kAvx2)
    kernels = Avx2Kernels(DType::kF32);
  return kernels == nullptr ? *PortableKernels(DType::kF32) : *kernels;
}

// The median of 21 runs.
double Microseconds(absl::FunctionRef<void(int run)> what) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int run = 0; run < 21; ++run) {
    const auto begin = Clock::now();
    what(run);
    times.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - begin)
            .count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

class Layer {
 public:
  Layer(int64_t hidden, int64_t heads)
      : hidden_(hidden),
        heads_(heads),
        x_(4 * kMostTokens * 4 * hidden),
        y_(4 * kMostTokens * 4 * hidden) {
    std::mt19937 random(1);
    std::normal_distribution<float> values(0, 1);
    std::generate_n(x_.floats(), kMostTokens * 4 * hidden,
                    [&] { return values(random); });
    const std::pair<int64_t, int64_t> shapes[] = {{hidden, 3 * hidden},
                                                  {hidden, hidden},
                                                  {hidden, 4 * hidden},
                                                  {4 * hidden, hidden}};
    const int64_t copies =
        std::max<int64_t>(2, kWeightBytes / (48 * hidden * hidden));
    memory_.Reserve(50 * hidden * hidden * copies);
    int64_t scratch = kernels_.attention_scratch_bytes(kMostTokens, hidden);
    for (const auto& [in, out] : shapes) {
      LinearWeights weights;
      weights.weight = {out, in, std::vector<float>(in * out, 0.01f)};
      weights.bias.assign(out, 0.1f);
      std::vector<Product>& all = products_.emplace_back();
      for (int64_t copy = 0; copy < copies; ++copy) {
        all.push_back(Product::Create(kernels_, weights,
                                      out == 4 * hidden ? Activation::kGeluErf
                                                        : Activation::kNone,
                                      &memory_)
                          .value());
      }
      scratch = std::max(scratch, all[0].scratch_bytes(kProductRows));
    }
    scratch_ = AlignedBuffer(scratch);
  }

  // Of the four products' largest parts.
  double ProductTime(int64_t tokens, int32_t cores) const {
    double sum = 0;
    for (const std::vector<Product>& copies : products_) {
      const int64_t panels = copies[0].panels();
      const int32_t parts = std::min(cores, MostProductParts(tokens, panels));
      ProductPart largest;
      for (int32_t part = 0; part < parts; ++part) {
        const ProductPart some = PartOfProduct(tokens, panels, part, parts);
        if (some.rows.count * some.panels.count >
            largest.rows.count * largest.panels.count)
          largest = some;
      }
      const int64_t in = &copies == &products_[3] ? 4 * hidden_ : hidden_;
      sum += Microseconds([&](int run) {
        const Product& product = copies[run % copies.size()];
        for (int64_t r = 0; r < largest.rows.count; r += kProductRows) {
          const int64_t rows = std::min(kProductRows, largest.rows.count - r);
          product.RunPanels({x_.data(), rows, in, DType::kF32},
                            largest.panels.first, largest.panels.count,
                            {y_.data(), rows, 0, DType::kF32}, scratch_.data());
        }
      });
    }
    return sum;
  }

  // Of the largest part of attention.
  double AttentionTime(int64_t tokens, int32_t cores) const {
    const QueryLine line = {heads_, tokens, tokens};
    const int32_t parts = std::min(cores, MostRowParts(tokens));
    Range largest;
    for (int32_t part = 0; part < parts; ++part) {
      const Range some = QueriesBetween(line, CostOf(line) * part / parts,
                                        CostOf(line) * (part + 1) / parts);
      if (some.count > largest.count) largest = some;
    }
    AttentionOp op;
    op.heads = static_cast<int32_t>(heads_);
    op.head_size = static_cast<int32_t>(hidden_ / heads_);
    op.qkv = {x_.data(), tokens, 3 * hidden_, DType::kF32};
    op.context = {y_.data(), tokens, hidden_, DType::kF32};
    return Microseconds([&](int) {
      Range rows = largest;
      while (rows.count > 0) {
        const QueryPiece piece = TakePiece(tokens, &rows);
        op.first_head = static_cast<int32_t>(piece.heads.first);
        op.head_count = static_cast<int32_t>(piece.heads.count);
        op.first_query = piece.queries.first;
        op.query_count = piece.queries.count;
        static_cast<const Kernel<AttentionOp>&>(kernels_).run(op,
                                                              scratch_.data());
      }
    });
  }

 private:
  const Kernels& kernels_ = BestKernels();
  const int64_t hidden_, heads_;
  AlignedBuffer x_, y_, scratch_;
  WeightMemory memory_;
  std::vector<std::vector<Product>> products_;
};

}  // namespace
}  // namespace cpu
}  // namespace encoderd

int main(int argc, char** argv) {
  const encoderd::cpu::Layer layer(argc == 3 ? std::atoi(argv[1]) : 384,
                                   argc == 3 ? std::atoi(argv[2]) : 12);
  std::cout << "| tokens | cores | products, us | attention, us |\n"
               "|---|---|---|---|\n";
  for (const int tokens : {16, 32, 128, 512}) {
    for (const int cores : {1, 2, 4, 8, 16, 32, 64}) {
      std::cout << absl::StrFormat("| %d | %d | %.0f | %.1f |\n", tokens, cores,
                                   layer.ProductTime(tokens, cores),
                                   layer.AttentionTime(tokens, cores));
    }
  }
  return 0;
}
