// How long the largest parts of a layer's products and attention take when
// many cores share one text, in fp32: each part is computed alone, on one core,
// undivided, after the weights have left the near caches. What the cores cost
// each other, in bandwidth and in handing work out, is not in it.
//   part_times [hidden_size heads]: of BERT's shape; MiniLM's without
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <random>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "engine/device/cpu/cpu_info.h"
#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/op_parts.h"
#include "engine/device/cpu/product.h"
#include "engine/device/device.h"

namespace encoderd {
namespace cpu {
namespace {

constexpr int64_t kMostTokens = 512;
constexpr int64_t kNearBytes = 32 << 20;  // more than a core's own caches

const Kernels& BestKernels() {
  const Kernels* kernels = nullptr;
  if (DetectIsa() >= Isa::kAvx512) kernels = Avx512Kernels(DType::kF32);
  if (kernels == nullptr && DetectIsa() >= Isa::kAvx2)
    kernels = Avx2Kernels(DType::kF32);
  return kernels == nullptr ? *PortableKernels(DType::kF32) : *kernels;
}

// The median of 21 runs, each after `before`.
double Microseconds(absl::FunctionRef<void()> before,
                    absl::FunctionRef<void()> what) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int run = 0; run < 21; ++run) {
    before();
    const auto begin = Clock::now();
    what();
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
        y_(4 * kMostTokens * 4 * hidden),
        other_(kNearBytes) {
    std::mt19937 random(1);
    std::normal_distribution<float> values(0, 1);
    std::generate_n(x_.floats(), kMostTokens * 4 * hidden,
                    [&] { return values(random); });
    std::fill_n(other_.floats(), kNearBytes / 4, 1.0f);
    memory_.Reserve(50 * hidden * hidden);
    Add(hidden, 3 * hidden, Activation::kNone);
    Add(hidden, hidden, Activation::kNone);
    Add(hidden, 4 * hidden, Activation::kGeluErf);
    Add(4 * hidden, hidden, Activation::kNone);
    int64_t scratch =
        kernels_.attention_scratch_bytes(kMostTokens, hidden / heads);
    for (const Linear& linear : linears_) {
      scratch = std::max(scratch, linear.product.scratch_bytes(kProductRows));
    }
    scratch_ = AlignedBuffer(scratch);
  }

  // Of the four products' largest parts.
  double ProductTime(int64_t tokens, int32_t cores) const {
    double sum = 0;
    for (const Linear& linear : linears_) {
      const int64_t panels = linear.product.panels();
      const ProductSize size = {tokens, panels};
      const ProductGrid grid = GridOf(size, cores);
      ProductBlock largest;
      for (int32_t part = 0; part < grid.parts(); ++part) {
        const ProductBlock some = PartOf(grid, size, part);
        if (some.rows.count * some.panels.count >
            largest.rows.count * largest.panels.count)
          largest = some;
      }
      const auto part_rows = [&](int64_t r, const AlignedBuffer& buffer,
                                 int64_t columns) {
        return Matrix{buffer.data(),
                      std::min(kProductRows, largest.rows.count - r), columns,
                      DType::kF32};
      };
      sum += Microseconds(
          [&] { ReadX(linear.in * std::min(kProductRows, tokens)); },
          [&] {
            for (int64_t r = 0; r < largest.rows.count; r += kProductRows) {
              linear.product.Run(part_rows(r, x_, linear.in),
                                 {largest.panels.first, largest.panels.count},
                                 part_rows(r, y_, linear.out), scratch_.data());
            }
          });
    }
    return sum;
  }

  // Of the largest part of attention.
  double AttentionTime(int64_t tokens, int32_t cores) const {
    const QueryLine line = {heads_, tokens};
    const int32_t parts = std::min(cores, MostQueryParts(heads_, 1, tokens));
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
    const Matrix context = {y_.data(), tokens, hidden_, DType::kF32};
    return Microseconds(
        [] {},
        [&] {
          Range rows = largest;
          while (rows.count > 0) {
            TakePiece(&rows, &op);
            op.context = RowsOf(context, op.first_query, op.query_count);
            static_cast<const Kernel<AttentionOp>&>(kernels_).run(
                op, scratch_.data());
          }
        });
  }

 private:
  struct Linear {
    int64_t in, out;
    Product product;
  };

  void Add(int64_t in, int64_t out, Activation activation) {
    LinearWeights weights;
    weights.weight = {out, in, std::vector<float>(in * out, 0.01f)};
    weights.bias.assign(out, 0.1f);
    linears_.push_back(
        {in, out,
         Product::Create(kernels_, weights, activation, &memory_).value()});
  }

  // Reads other memory, then the first values of x.
  void ReadX(int64_t values) const {
    sum_ = std::accumulate(other_.floats(), other_.floats() + kNearBytes / 4,
                           0.0f) +
           std::accumulate(x_.floats(), x_.floats() + values, 0.0f);
  }

  const Kernels& kernels_ = BestKernels();
  const int64_t hidden_, heads_;
  AlignedBuffer x_, y_, other_, scratch_;
  WeightMemory memory_;
  std::vector<Linear> linears_;
  mutable volatile float sum_ = 0;  // so that it is read
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
