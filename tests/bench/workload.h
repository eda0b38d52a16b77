// What the benchmarks run: models, sequences of ids, and a pool of Sessions.
#ifndef ENCODERD_TESTS_BENCH_WORKLOAD_H_
#define ENCODERD_TESTS_BENCH_WORKLOAD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/encoder.h"

namespace encoderd {

struct BenchModel {
  ModelConfig config;
  IdLimits limits;
  std::unique_ptr<const Encoder> encoder;
};

// name: "minilm", "bert-base" or "bert-large" (random weights of that shape) or
// a model folder. max_len is raised to all rows of the position table.
absl::StatusOr<BenchModel> LoadBenchModel(const std::string& name,
                                          std::unique_ptr<Device> device);

// Lengths by name, a fixed seed, about `tokens` tokens in all. "16", "128",
// "512": all of that length; "mix": log-normal, median 24, sigma 1, clipped
// to 4..512.
std::vector<int32_t> WorkloadLengths(const std::string& name, int64_t tokens);
std::vector<TokenSequence> RandomSequences(const std::vector<int32_t>& lengths,
                                           const IdLimits& limits);

// FLOPs of the products and the attention of one pass over a sequence. Of a
// last layer of which `pooling` takes one row, those of its keys and values,
// and of this row.
double SequenceFlops(const ModelConfig& config, int64_t length,
                     Pooling pooling);

// Sequences in batches of the Sessions' size, in the order given; one Session
// a thread, each taking the next batch.
class BenchRunner {
 public:
  static absl::StatusOr<std::unique_ptr<BenchRunner>> Create(
      const BenchModel& model, const std::vector<TokenSequence>& sequences,
      int32_t threads, int64_t max_batch_tokens, Pooling pooling);

  // Seconds of one pass over everything.
  absl::StatusOr<double> Run();
  // The vectors of the last Run, [sequences,H], normalized.
  const std::vector<float>& vectors() const { return vectors_; }
  int64_t tokens() const { return tokens_; }
  double flops() const { return flops_; }

 private:
  BenchRunner() = default;
  absl::Status RunBatch(size_t thread, size_t batch);

  SequenceOutput output_;
  int64_t hidden_size_ = 0;
  int64_t tokens_ = 0;
  double flops_ = 0;
  std::vector<PackedBatch> batches_;
  std::vector<int64_t> first_sequence_;  // of each batch
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<ForwardResult> results_;  // one a session
  std::vector<float> vectors_;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_BENCH_WORKLOAD_H_
