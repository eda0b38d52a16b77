#include "tests/bench/workload.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>
#include <utility>

#include "absl/memory/memory.h"
#include "engine/base/pooling.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/device/op_costs.h"
#include "tests/support/random_model.h"

namespace encoderd {
namespace {

RandomShape MiniLm() {
  RandomShape shape;
  shape.layers = 6;
  shape.hidden = 384;
  shape.heads = 12;
  shape.inner = 1536;
  shape.vocabulary = 30522;
  shape.positions = 512;
  return shape;
}

RandomShape BertBase() {
  RandomShape shape = MiniLm();
  shape.layers = 12;
  shape.hidden = 768;
  shape.inner = 3072;
  return shape;
}

RandomShape BertLarge() {
  RandomShape shape = MiniLm();
  shape.layers = 24;
  shape.hidden = 1024;
  shape.heads = 16;
  shape.inner = 4096;
  return shape;
}

}  // namespace

absl::StatusOr<BenchModel> LoadBenchModel(const std::string& name,
                                          std::unique_ptr<Device> device) {
  BenchModel model;
  std::unique_ptr<WeightSource> checkpoint;
  if (name == "minilm" || name == "bert-base" || name == "bert-large") {
    const RandomShape shape = name == "minilm"      ? MiniLm()
                              : name == "bert-base" ? BertBase()
                                                    : BertLarge();
    model.config = RandomConfig(shape);
    model.limits = RandomLimits(shape);
    checkpoint = RandomCheckpoint(shape, 1);
  } else {
    absl::StatusOr<ModelConfig> config = LoadModelConfig(name, 0);
    if (!config.ok()) return config.status();
    model.config = *std::move(config);
    model.limits = model.config.limits();
    auto opened = CheckpointReader::Open(name, model.config);
    if (!opened.ok()) return opened.status();
    checkpoint = *std::move(opened);
  }
  auto encoder =
      Encoder::Build(std::move(device), model.config, checkpoint.get());
  if (!encoder.ok()) return encoder.status();
  model.encoder = *std::move(encoder);
  return model;
}

std::vector<int32_t> WorkloadLengths(const std::string& name, int64_t tokens) {
  std::mt19937 random(42);
  std::lognormal_distribution<double> mix(std::log(24.0), 1.0);
  std::vector<int32_t> lengths;
  for (int64_t sum = 0; sum < tokens; sum += lengths.back()) {
    lengths.push_back(name == "mix" ? static_cast<int32_t>(
                                          std::clamp(mix(random), 4.0, 512.0))
                                    : static_cast<int32_t>(std::stol(name)));
  }
  return lengths;
}

std::vector<TokenSequence> RandomSequences(const std::vector<int32_t>& lengths,
                                           const IdLimits& limits) {
  std::mt19937 random(1);
  std::vector<TokenSequence> sequences;
  for (const int32_t length : lengths)
    sequences.push_back(RandomSequence(length, limits, &random));
  return sequences;
}

double SequenceFlops(const ModelConfig& config, int64_t length,
                     Pooling pooling) {
  const double h = config.hidden_size, f = config.intermediate_size;
  const double products = 4 * h * h + (config.gated ? 3 : 2) * h * f;
  const auto n = static_cast<int32_t>(length);
  double flops = 0;
  for (const LayerSpec& layer : config.layers) {
    flops += 2 * products * n + 4 * h * PairsWithin(layer.reach, n);
  }
  const auto row = static_cast<int32_t>(PooledRow(pooling, n));
  if (row >= 0) {
    const Reach& reach = config.layers.back().reach;
    flops -= 2 * (products - 2 * h * h) * (n - 1) +
             4 * h * (PairsWithin(reach, n) - KeysWithin(reach, row, n));
  }
  return flops;
}

absl::StatusOr<std::unique_ptr<BenchRunner>> BenchRunner::Create(
    const BenchModel& model, const std::vector<TokenSequence>& sequences,
    int32_t threads, int64_t max_batch_tokens, Pooling pooling) {
  auto runner = absl::WrapUnique(new BenchRunner);
  runner->output_.pooling = pooling;
  runner->output_.normalize = true;
  for (int32_t t = 0; t < threads; ++t) {
    auto session = model.encoder->NewSession({max_batch_tokens});
    if (!session.ok()) return session.status();
    runner->sessions_.push_back(*std::move(session));
  }
  runner->results_.resize(threads);
  runner->hidden_size_ = model.config.hidden_size;
  int64_t budget = runner->sessions_.front()->max_batch_tokens();
  if (max_batch_tokens > 0) budget = std::min(budget, max_batch_tokens);
  for (size_t i = 0; i < sequences.size(); ++i) {
    absl::Status status = ValidateSequence(sequences[i], model.limits);
    if (!status.ok()) return status;
    if (runner->batches_.empty() ||
        runner->batches_.back().num_tokens() + sequences[i].size() > budget) {
      runner->batches_.emplace_back();
      runner->first_sequence_.push_back(static_cast<int64_t>(i));
    }
    runner->batches_.back().Append(sequences[i], model.limits);
    runner->tokens_ += sequences[i].size();
    runner->flops_ += SequenceFlops(model.config, sequences[i].size(), pooling);
  }
  runner->vectors_.resize(sequences.size() * model.config.hidden_size);
  return runner;
}

absl::Status BenchRunner::RunBatch(size_t thread, size_t batch) {
  const std::vector<SequenceOutput> outputs(batches_[batch].num_sequences(),
                                            output_);
  ForwardResult& result = results_[thread];
  absl::Status status =
      sessions_[thread]->Run(batches_[batch], outputs, &result);
  if (!status.ok()) return status;
  std::copy(result.values.begin(), result.values.end(),
            vectors_.begin() + first_sequence_[batch] * hidden_size_);
  return status;
}

absl::StatusOr<double> BenchRunner::Run() {
  std::atomic<size_t> next{0};
  std::vector<absl::Status> statuses(sessions_.size());
  const auto start = std::chrono::steady_clock::now();
  const auto work = [&](size_t t) {
    for (size_t batch = next++; batch < batches_.size(); batch = next++)
      statuses[t].Update(RunBatch(t, batch));
  };
  std::vector<std::thread> workers;
  for (size_t t = 1; t < sessions_.size(); ++t) workers.emplace_back(work, t);
  work(0);  // here: a single batch costs no thread
  for (std::thread& worker : workers) worker.join();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return seconds;
}

}  // namespace encoderd
