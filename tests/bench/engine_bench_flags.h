// What engine_bench is asked: its flags, and the file of sequences.
#ifndef ENCODERD_TESTS_BENCH_ENGINE_BENCH_FLAGS_H_
#define ENCODERD_TESTS_BENCH_ENGINE_BENCH_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/batch.h"
#include "engine/base/kinds.h"

namespace encoderd {

// Of all flags; what --help prints.
extern const char kEngineBenchUsage[];

struct EngineBenchFlags {
  std::string model = "minilm";
  std::string device = "cpu";
  std::string dtype = "fp32";
  std::string products = "dtype";
  std::string tuning_folder;     // empty: nothing is kept
  std::string ids;               // empty: the workloads
  int32_t threads = 0;           // 0: as many as fill the device
  int64_t max_batch_tokens = 0;  // 0: the device's
  int32_t repeats = 5;
  int64_t tokens = 32768;  // of a workload, about
  Pooling pooling = Pooling::kMean;
  double peak_tflops = 0;  // 0: measured
  bool ops = false;
  bool cuda_graphs = true;
  bool help = false;
};

// The arguments without the program's name. INVALID_ARGUMENT: an unknown flag,
// or a value that it does not take, named with what it takes.
absl::StatusOr<EngineBenchFlags> ParseEngineBenchFlags(
    absl::Span<const std::string> arguments);

// One sequence a line, ids in decimal. INVALID_ARGUMENT: the file cannot be
// read or is empty, or a line, which is named, holds no ids or something else.
absl::StatusOr<std::vector<TokenSequence>> ReadIds(const std::string& path);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_BENCH_ENGINE_BENCH_FLAGS_H_
