// The engine alone: ids in, vectors out; one JSON object a line on stdout.
//
// engine_bench [--model=minilm|bert-base|bert-large|FOLDER]
//     [--device=cpu|cuda|cuda:N] [--dtype=fp32|bf16|fp16]
//     [--products=dtype|fp8] what products multiply on a card
//     [--threads=N] [--max_batch_tokens=N] [--repeats=N] [--tokens=N]
//     [--tuning_folder=FOLDER] where a card keeps its choices; empty: nowhere
//     [--cuda_graphs=true|false] small batches by CUDA graphs, on a card
//     [--peak_tflops=N] what to quote shares of; 0: measured on the CPU
//     [--ops]          time, FLOP, bytes and shares of the ceilings by op, one
//                      thread; on a card by events, its ceilings measured
//     [--ids=FILE]     sequences from a file, one a line, ids in decimal;
//                      obeys stdin: "run" prints seconds, "vectors PATH"
//                      writes float32 [sequences,H], "ids PATH" takes other
//                      sequences, warms up and prints "ready", "peak" prints
//                      FLOP/s, end of input ends
//
// Without --ids: lengths 16, 128, 512 and the mix (workload.h), each `repeats`
// times, median, minimum and maximum.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/cpu/cpu_info.h"
#include "engine/device/device_words.h"
#include "tests/bench/card_ceilings.h"
#include "tests/bench/peak.h"
#include "tests/bench/timed_device.h"
#include "tests/bench/workload.h"

namespace encoderd {
namespace {

using Flags = std::map<std::string, std::string>;

[[noreturn]] void Fail(const absl::Status& status) {
  std::cerr << "engine_bench: " << status.message() << "\n";
  std::exit(1);
}

template <typename T>
T OrFail(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(value.status());
  return *std::move(value);
}

Flags ParseFlags(int argc, char** argv) {
  Flags flags = {{"model", "minilm"},
                 {"device", "cpu"},
                 {"dtype", "fp32"},
                 {"threads", "0"},
                 {"repeats", "5"},
                 {"max_batch_tokens", "0"},
                 {"ops", ""},
                 {"tokens", "32768"},
                 {"ids", ""},
                 {"peak_tflops", "0"},
                 {"tuning_folder", ""},
                 {"products", "dtype"},
                 {"cuda_graphs", "true"}};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string name =
        argument.rfind("--", 0) == 0 ? argument.substr(2, equals - 2) : "";
    if (flags.count(name) == 0) {
      Fail(absl::InvalidArgumentError("unknown argument " + argument +
                                      "; the top of engine_bench.cc has all"));
    }
    flags[name] =
        equals == std::string::npos ? "true" : argument.substr(equals + 1);
  }
  return flags;
}

std::vector<TokenSequence> ReadIds(const std::string& path) {
  std::ifstream file(path);
  if (!file) Fail(absl::NotFoundError("cannot read " + path));
  std::vector<TokenSequence> sequences;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream numbers(line);
    TokenSequence sequence;
    for (int32_t id; numbers >> id;) sequence.token_ids.push_back(id);
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

double Peak(const Flags& flags, DType dtype, int32_t threads, double seconds) {
  const double given = std::stod(flags.at("peak_tflops")) * 1e12;
  return given > 0 ? given : MeasurePeak(dtype, threads, seconds);
}

// A warm runner over the sequences of a file.
std::unique_ptr<BenchRunner> RunnerOf(const Flags& flags,
                                      const BenchModel& model, int32_t threads,
                                      const std::string& path) {
  auto runner = OrFail(BenchRunner::Create(
      model, ReadIds(path), threads, std::stoll(flags.at("max_batch_tokens"))));
  OrFail(runner->Run());
  return runner;
}

void Obey(const Flags& flags, const BenchModel& model, DType dtype,
          int32_t threads) {
  auto runner = RunnerOf(flags, model, threads, flags.at("ids"));
  std::cout << "ready" << std::endl;
  std::string command;
  while (std::cin >> command) {
    if (command == "ids") {
      std::string path;
      std::getline(std::cin >> std::ws, path);  // it may hold spaces
      runner.reset();  // frees its memory before the next takes any
      runner = RunnerOf(flags, model, threads, path);
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
      Fail(absl::InvalidArgumentError("unknown command " + command));
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
  auto device =
      OrFail(OpenDevice(flags.at("device"), flags.at("dtype"),
                        flags.at("tuning_folder"), flags.at("products")));
  const DType dtype = device->dtype();
  const bool on_card = device->ObserveOps(observe);
  if (!on_card) device = TimeOps(std::move(device), observe);
  const BenchModel model =
      OrFail(LoadBenchModel(flags.at("model"), std::move(device)));
  const auto sequences = RandomSequences(
      WorkloadLengths(workload, std::stoll(flags.at("tokens"))), model.limits);
  auto runner =
      OrFail(BenchRunner::Create(model, sequences, /*threads=*/1,
                                 std::stoll(flags.at("max_batch_tokens"))));
  OrFail(runner->Run());  // warms up
  totals.clear();
  for (int i = 0; i < std::stoi(flags.at("repeats")); ++i)
    OrFail(runner->Run());
  Ceilings ceilings;
  if (on_card) {
    const auto choice = ParseDevice(flags.at("device"));
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
  auto device =
      OrFail(OpenDevice(flags.at("device"), flags.at("dtype"),
                        flags.at("tuning_folder"), flags.at("products")));
  device->AllowGraphs(flags.at("cuda_graphs") == "true");
  const DType dtype = device->dtype();
  const std::string name = device->name();
  const std::string products = device->products();
  const BenchModel model =
      OrFail(LoadBenchModel(flags.at("model"), std::move(device)));
  int32_t threads = std::stoi(flags.at("threads"));
  if (threads == 0) threads = model.encoder->device().preferred_sessions();
  const auto sequences = RandomSequences(
      WorkloadLengths(workload, std::stoll(flags.at("tokens"))), model.limits);
  auto runner = OrFail(BenchRunner::Create(
      model, sequences, threads, std::stoll(flags.at("max_batch_tokens"))));
  OrFail(runner->Run());  // warms up
  std::vector<double> rates, shares;
  double peak = 0;
  for (int i = 0; i < std::stoi(flags.at("repeats")); ++i) {
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
      flags.at("model").c_str(), name.c_str(), products.c_str(), threads,
      workload.c_str(), rates[rates.size() / 2], rates.front(), rates.back(),
      shares[shares.size() / 2], peak * 1e-9);
  std::fflush(stdout);
}

void Main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv);
  if (flags.at("ids").empty()) {
    for (const char* workload : {"16", "128", "512", "mix"}) {
      flags.at("ops") == "true" ? RunOpsOf(flags, workload)
                                : RunWorkload(flags, workload);
    }
    return;
  }
  auto device =
      OrFail(OpenDevice(flags.at("device"), flags.at("dtype"),
                        flags.at("tuning_folder"), flags.at("products")));
  device->AllowGraphs(flags.at("cuda_graphs") == "true");
  const DType dtype = device->dtype();
  const BenchModel model =
      OrFail(LoadBenchModel(flags.at("model"), std::move(device)));
  int32_t threads = std::stoi(flags.at("threads"));
  if (threads == 0) threads = model.encoder->device().preferred_sessions();
  Obey(flags, model, dtype, threads);
}

}  // namespace
}  // namespace encoderd

int main(int argc, char** argv) { encoderd::Main(argc, argv); }
