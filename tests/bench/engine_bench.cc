// The engine alone: ids in, vectors out; one JSON object a line on stdout. Its
// flags are in engine_bench_flags.cc, and --help prints them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/cpu/cpu_info.h"
#include "engine/device/device_words.h"
#include "tests/bench/card_ceilings.h"
#include "tests/bench/engine_bench_flags.h"
#include "tests/bench/peak.h"
#include "tests/bench/timed_device.h"
#include "tests/bench/workload.h"

namespace encoderd {
namespace {

using Flags = EngineBenchFlags;

constexpr int kFailed = 1;
constexpr int kAskedWrongly = 2;

[[noreturn]] void Fail(const absl::Status& status, int code = kFailed) {
  std::cerr << "engine_bench: " << status.message() << "\n";
  std::exit(code);
}

template <typename T>
T OrFail(absl::StatusOr<T> value, int code = kFailed) {
  if (!value.ok()) Fail(value.status(), code);
  return *std::move(value);
}

double Peak(const Flags& flags, DType dtype, int32_t threads, double seconds) {
  const double given = flags.peak_tflops * 1e12;
  if (given > 0) return given;
  const auto choice = ParseDevice(flags.device);
  const cpu::Isa best = cpu::DetectIsa();
  return MeasurePeak(dtype,
                     choice.has_value() ? choice->isa.value_or(best) : best,
                     threads, seconds);
}

std::vector<TokenSequence> SequencesOf(const std::string& path) {
  return OrFail(ReadIds(path), kAskedWrongly);
}

std::unique_ptr<BenchRunner> WarmRunner(
    const Flags& flags, const BenchModel& model, int32_t threads,
    const std::vector<TokenSequence>& sequences) {
  auto runner = OrFail(BenchRunner::Create(
      model, sequences, threads, flags.max_batch_tokens, flags.pooling));
  OrFail(runner->Run());
  return runner;
}

void Obey(const Flags& flags, const BenchModel& model, DType dtype,
          int32_t threads, const std::vector<TokenSequence>& sequences) {
  auto runner = WarmRunner(flags, model, threads, sequences);
  std::cout << "ready" << std::endl;
  std::string command;
  while (std::cin >> command) {
    if (command == "ids") {
      std::string path;
      std::getline(std::cin >> std::ws, path);  // it may hold spaces
      runner.reset();  // frees its memory before the next takes any
      runner = WarmRunner(flags, model, threads, SequencesOf(path));
      std::cout << "ready" << std::endl;
    } else if (command == "run") {
      std::cout << OrFail(runner->Run()) << std::endl;
    } else if (command == "vectors") {
      std::string path;
      std::getline(std::cin >> std::ws, path);
      std::ofstream file(path, std::ios::binary);
      file.write(reinterpret_cast<const char*>(runner->vectors().data()),
                 static_cast<std::streamsize>(runner->vectors().size() * 4));
      std::cout << (file.flush() ? "written" : "failed") << std::endl;
    } else if (command == "peak") {
      std::cout << Peak(flags, dtype, threads, 0.2) << std::endl;
    } else {
      Fail(absl::InvalidArgumentError("unknown command " + command),
           kAskedWrongly);
    }
  }
}

struct OpTotal {
  OpTime sum;
  int64_t calls = 0;
};
using OpTotals = std::map<std::string, OpTotal>;  // by name of the op

// What shares are quoted of; 0: not known.
struct Ceilings {
  double flops = 0;
  double bytes_per_second = 0;
};

// One line for each op.
void PrintOps(const OpTotals& totals, const std::string& workload,
              const Ceilings& ceilings) {
  double all = 0;
  for (const auto& [op, total] : totals) all += total.sum.seconds;
  for (const auto& [op, total] : totals) {
    const double seconds = total.sum.seconds;
    std::printf(
        "{\"workload\": \"%s\", \"op\": \"%s\", \"calls\": %lld, "
        "\"microseconds\": %.2f, \"share_of_time\": %.4f, \"gflop\": %.4f, "
        "\"megabytes\": %.4f",
        workload.c_str(), op.c_str(), static_cast<long long>(total.calls),
        1e6 * seconds / static_cast<double>(total.calls), seconds / all,
        1e-9 * total.sum.flops / static_cast<double>(total.calls),
        1e-6 * total.sum.bytes / static_cast<double>(total.calls));
    if (ceilings.flops > 0) {
      std::printf(", \"share_of_peak\": %.3f",
                  total.sum.flops / seconds / ceilings.flops);
    }
    if (ceilings.bytes_per_second > 0) {
      std::printf(", \"share_of_bandwidth\": %.3f",
                  total.sum.bytes / seconds / ceilings.bytes_per_second);
    }
    std::printf("}\n");
  }
  std::fflush(stdout);
}

// Seconds by op: of calls on the CPU, by events on a card.
void RunOpsOf(const Flags& flags, const std::string& workload) {
  OpTotals totals;
  const OpObserver observe = [&](const OpTime& time) {
    OpTotal& total = totals[time.op];
    total.sum.seconds += time.seconds;
    total.sum.flops += time.flops;
    total.sum.bytes += time.bytes;
    ++total.calls;
  };
  auto device = OrFail(OpenDevice(flags.device, flags.dtype,
                                  flags.tuning_folder, flags.products));
  const DType dtype = device->dtype();
  const bool on_card = device->ObserveOps(observe);
  if (!on_card) device = TimeOps(std::move(device), observe);
  const BenchModel model =
      OrFail(LoadBenchModel(flags.model, std::move(device)));
  const auto sequences =
      RandomSequences(WorkloadLengths(workload, flags.tokens), model.limits);
  auto runner = OrFail(BenchRunner::Create(
      model, sequences, /*threads=*/1, flags.max_batch_tokens, flags.pooling));
  OrFail(runner->Run());  // warms up
  totals.clear();
  for (int i = 0; i < flags.repeats; ++i) OrFail(runner->Run());
  Ceilings ceilings;
  if (on_card) {
    const auto choice = ParseDevice(flags.device);
    const int32_t ordinal = choice.has_value() && !choice->cards.empty()
                                ? choice->cards.front()
                                : 0;
    const CardCeilings card = OrFail(MeasureCardCeilings(ordinal, dtype));
    ceilings = {card.flops, card.bytes_per_second};
  } else {
    ceilings.flops = Peak(flags, dtype, 1, 0.1);
  }
  PrintOps(totals, workload, ceilings);
}

void RunWorkload(const Flags& flags, const std::string& workload) {
  auto device = OrFail(OpenDevice(flags.device, flags.dtype,
                                  flags.tuning_folder, flags.products));
  device->AllowGraphs(flags.cuda_graphs);
  const DType dtype = device->dtype();
  const std::string name = device->name();
  const std::string products = device->products();
  const BenchModel model =
      OrFail(LoadBenchModel(flags.model, std::move(device)));
  int32_t threads = flags.threads;
  if (threads == 0) threads = model.encoder->device().preferred_sessions();
  const auto sequences =
      RandomSequences(WorkloadLengths(workload, flags.tokens), model.limits);
  auto runner = OrFail(BenchRunner::Create(
      model, sequences, threads, flags.max_batch_tokens, flags.pooling));
  OrFail(runner->Run());  // warms up
  std::vector<double> rates, shares;
  double peak = 0;
  for (int i = 0; i < flags.repeats; ++i) {
    peak = Peak(flags, dtype, threads, 0.1);
    const double seconds = OrFail(runner->Run());
    rates.push_back(static_cast<double>(runner->tokens()) / seconds);
    shares.push_back(runner->flops() / seconds / peak);
  }
  std::sort(rates.begin(), rates.end());
  std::sort(shares.begin(), shares.end());
  std::printf(
      "{\"model\": \"%s\", \"device\": \"%s\", \"dtype\": \"%s\", "
      "\"threads\": %d, \"workload\": \"%s\", \"tokens_per_second\": %.0f, "
      "\"min\": %.0f, \"max\": %.0f, \"share_of_peak\": %.3f, "
      "\"peak_gflops\": %.0f}\n",
      flags.model.c_str(), name.c_str(), products.c_str(), threads,
      workload.c_str(), rates[rates.size() / 2], rates.front(), rates.back(),
      shares[shares.size() / 2], peak * 1e-9);
  std::fflush(stdout);
}

void Main(const std::vector<std::string>& arguments) {
  const Flags flags = OrFail(ParseEngineBenchFlags(arguments), kAskedWrongly);
  if (flags.help) {
    std::cout << kEngineBenchUsage;
    return;
  }
  if (flags.ids.empty()) {
    for (const char* workload : {"16", "128", "512", "mix"}) {
      flags.ops ? RunOpsOf(flags, workload) : RunWorkload(flags, workload);
    }
    return;
  }
  // First what costs no time to find wrong.
  const std::vector<TokenSequence> sequences = SequencesOf(flags.ids);
  auto device = OrFail(OpenDevice(flags.device, flags.dtype,
                                  flags.tuning_folder, flags.products));
  device->AllowGraphs(flags.cuda_graphs);
  const DType dtype = device->dtype();
  const BenchModel model =
      OrFail(LoadBenchModel(flags.model, std::move(device)));
  int32_t threads = flags.threads;
  if (threads == 0) threads = model.encoder->device().preferred_sessions();
  Obey(flags, model, dtype, threads, sequences);
}

}  // namespace
}  // namespace encoderd

int main(int argc, char** argv) { encoderd::Main({argv + 1, argv + argc}); }
