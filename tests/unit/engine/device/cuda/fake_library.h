// A library of products whose algorithms a test makes up: what each takes, on
// a clock that they turn, and how each fails or lies. Of bf16 alone.
#ifndef ENCODERD_TESTS_UNIT_ENGINE_DEVICE_CUDA_FAKE_LIBRARY_H_
#define ENCODERD_TESTS_UNIT_ENGINE_DEVICE_CUDA_FAKE_LIBRARY_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/cuda/products/algorithms.h"
#include "tests/support/cuda/emulated_stream.h"
#include "tests/support/narrow.h"

namespace encoderd {
namespace cuda {

struct FakeAlgorithm {
  double seconds = 1;        // of a row
  double few_seconds = 0;    // of one in a run of at most 128; 0: the same
  int64_t refuses_rows = 0;  // Check refuses this count; 0: none
  int64_t lies_from = 0;  // another last bit in runs of this many rows; 0: none
  bool lies_adding = false;  // the residual is added twice
  bool adds = true;
  float value = 0.0f;  // of every product
  absl::Status run;    // of each run
  std::function<void()> on_run;
};

// What the library and its products share.
struct FakeBench {
  double now = 0;
  std::map<Algorithm, FakeAlgorithm> algorithms;  // offered in this order
  absl::Status check;  // of each Check, where it fails
  int runs = 0;
  std::vector<int64_t> asked;  // counts of rows that Candidates was asked for
  std::vector<Algorithm> created;  // in order
};

class FakeProduct : public Product {
 public:
  FakeProduct(FakeBench* bench, const ProductArgs& args, Algorithm algorithm)
      : bench_(bench), args_(args), algorithm_(std::move(algorithm)) {}

  absl::Status Run(const void* x, int64_t rows, void* y,
                   const OpStream& stream) const override {
    return RunAdding(x, rows, nullptr, y, stream);
  }
  bool adds_residual() const override { return algorithm().adds; }
  absl::Status RunAdding(const void* x, int64_t rows, const void* residual,
                         void* y, const OpStream& stream) const override {
    ++bench_->runs;
    if (algorithm().on_run) algorithm().on_run();
    if (!algorithm().run.ok()) return algorithm().run;
    emulation::Put(stream.stream, [=, this] {
      Compute(rows, static_cast<const uint16_t*>(residual),
              static_cast<uint16_t*>(y));
      return 0;
    });
    return absl::OkStatus();
  }

 private:
  void Compute(int64_t rows, const uint16_t* added, uint16_t* to) const {
    const bool few = rows <= 128 && algorithm().few_seconds > 0;
    bench_->now += static_cast<double>(rows) *
                   (few ? algorithm().few_seconds : algorithm().seconds);
    for (int64_t i = 0; i < rows * args_.out; ++i) {
      const float more = added == nullptr ? 0 : emulation::FromBf16(added[i]);
      to[i] = emulation::ToBf16(algorithm().value +
                                (algorithm().lies_adding ? 2 : 1) * more);
    }
    if (algorithm().lies_from > 0 && rows >= algorithm().lies_from)
      to[rows * args_.out - 1] ^= 1;
  }

  const FakeAlgorithm& algorithm() const {
    return bench_->algorithms.at(algorithm_);
  }

  FakeBench* const bench_;
  const ProductArgs args_;
  const Algorithm algorithm_;
};

class FakeLibrary : public AlgorithmLibrary {
 public:
  explicit FakeLibrary(FakeBench* bench) : bench_(bench) {}

  std::string name() const override { return "fake 1"; }
  absl::StatusOr<std::vector<Algorithm>> Candidates(const ProductArgs& args,
                                                    int64_t rows) override {
    bench_->asked.push_back(rows);
    std::vector<Algorithm> all;
    for (const auto& [name, algorithm] : bench_->algorithms)
      all.push_back(name);
    return all;
  }
  absl::Status Check(const ProductArgs& args, const Algorithm& algorithm,
                     absl::Span<const int64_t> rows) override {
    if (!bench_->check.ok()) return bench_->check;
    const auto found = bench_->algorithms.find(algorithm);
    if (found == bench_->algorithms.end())
      return absl::InvalidArgumentError("unknown bytes");
    for (const int64_t count : rows) {
      if (count == found->second.refuses_rows)
        return absl::InvalidArgumentError("not at this count of rows");
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args, const Algorithm& algorithm) override {
    bench_->created.push_back(algorithm);
    return std::unique_ptr<Product>(new FakeProduct(bench_, args, algorithm));
  }
  std::string Describe(const Algorithm& algorithm) const override {
    return "algorithm " + algorithm;
  }

 private:
  FakeBench* const bench_;
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_TESTS_UNIT_ENGINE_DEVICE_CUDA_FAKE_LIBRARY_H_
