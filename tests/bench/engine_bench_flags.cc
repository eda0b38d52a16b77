#include "tests/bench/engine_bench_flags.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/base/pooling.h"

namespace encoderd {

const char kEngineBenchUsage[] =
    R"(engine_bench: the engine alone, ids in, vectors out; one JSON object a line.

  --model=minilm|bert-base|bert-large|FOLDER   the first three: random weights
  --device=cpu|cpu:INSTRUCTIONS|cuda|cuda:N
  --dtype=fp32|bf16|fp16
  --products=dtype|fp8|int8 what products multiply: fp8 on a card, int8 on a CPU
  --threads=N               Sessions; 0 (default): as many as fill the device
  --max_batch_tokens=N      0 (default): the device's
  --repeats=N               default 5
  --tokens=N                of a workload, about; default 32768
  --pooling=mean|cls|lasttoken|max|mean_sqrt_len|weightedmean
  --tuning_folder=FOLDER    where a card keeps its choices; empty: nowhere
  --cuda_graphs=true|false  small batches by CUDA graphs, on a card
  --peak_tflops=N           what to quote shares of; 0: measured on the CPU
  --ops                     time, FLOP, bytes and shares of the ceilings by op,
                            one thread; on a card by events, its ceilings
                            measured
  --ids=FILE                sequences from a file, one a line, ids in decimal;
                            obeys stdin: "run" prints seconds, "vectors PATH"
                            writes float32 [sequences,H], "ids PATH" takes other
                            sequences, warms up and prints "ready", "peak"
                            prints FLOP/s, end of input ends

Without --ids: lengths 16, 128, 512 and a mix, each --repeats times: median,
minimum and maximum. Exit 2: asked wrongly; 1: something failed.
)";

namespace {

// Takes a value; what the flag takes where that is not it, else "".
using Setter = std::function<std::string(absl::string_view value)>;

Setter Text(std::string* text) {
  return [text](absl::string_view value) {
    *text = std::string(value);
    return "";
  };
}

Setter Named(std::string* text) {
  return [text](absl::string_view value) {
    *text = std::string(value);
    return value.empty() ? "a name" : "";
  };
}

template <typename T>
Setter Integer(T least, T most, T* number) {
  return [=](absl::string_view value) {
    const bool good =
        absl::SimpleAtoi(value, number) && *number >= least && *number <= most;
    return good ? ""
                : absl::StrCat("a whole number from ", least, " to ", most);
  };
}

Setter Rate(double* number) {
  return [number](absl::string_view value) {
    const bool good = absl::SimpleAtod(value, number) &&
                      std::isfinite(*number) && *number >= 0;
    return good ? "" : "a number from 0";
  };
}

Setter Pooled(Pooling* pooling) {
  return [pooling](absl::string_view value) -> std::string {
    const absl::StatusOr<Pooling> parsed = PoolingFromName(value);
    if (!parsed.ok()) return "the name of a pooling, such as cls";
    *pooling = *parsed;
    return "";
  };
}

Setter Switch(bool* on) {
  return [on](absl::string_view value) {
    *on = value == "true";
    return *on || value == "false" ? "" : "true or false";
  };
}

}  // namespace

absl::StatusOr<EngineBenchFlags> ParseEngineBenchFlags(
    absl::Span<const std::string> arguments) {
  constexpr int32_t kMostThreads = 1024;
  constexpr int64_t kMostTokens = int64_t{1} << 30;
  EngineBenchFlags flags;
  const std::map<std::string, Setter> setters = {
      {"model", Named(&flags.model)},
      {"device", Named(&flags.device)},
      {"dtype", Named(&flags.dtype)},
      {"products", Named(&flags.products)},
      {"tuning_folder", Text(&flags.tuning_folder)},
      {"ids", Named(&flags.ids)},
      {"threads", Integer<int32_t>(0, kMostThreads, &flags.threads)},
      {"max_batch_tokens",
       Integer<int64_t>(0, kMostTokens, &flags.max_batch_tokens)},
      {"repeats", Integer<int32_t>(1, std::numeric_limits<int32_t>::max(),
                                   &flags.repeats)},
      {"tokens", Integer<int64_t>(1, kMostTokens, &flags.tokens)},
      {"pooling", Pooled(&flags.pooling)},
      {"peak_tflops", Rate(&flags.peak_tflops)},
      {"ops", Switch(&flags.ops)},
      {"cuda_graphs", Switch(&flags.cuda_graphs)},
      {"help", Switch(&flags.help)}};
  for (const std::string& argument : arguments) {
    absl::string_view rest = argument;
    const bool flag = absl::ConsumePrefix(&rest, "--");
    const size_t equals = rest.find('=');
    const std::string name(rest.substr(0, equals));
    const auto setter = setters.find(name);
    if (!flag || setter == setters.end())
      return absl::InvalidArgumentError(
          absl::StrCat("unknown argument ", argument, "; --help lists all"));
    const bool given = equals != absl::string_view::npos;
    const bool is_switch =
        name == "ops" || name == "cuda_graphs" || name == "help";
    if (!given && !is_switch)
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, " takes a value: --", name, "=..."));
    const absl::string_view value = given ? rest.substr(equals + 1) : "true";
    const std::string takes = setter->second(value);
    if (takes.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, "=", value, ": it takes ", takes));
  }
  return flags;
}

absl::StatusOr<std::vector<TokenSequence>> ReadIds(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  std::vector<TokenSequence> sequences;
  std::string line;
  while (std::getline(file, line)) {
    TokenSequence sequence;
    for (const absl::string_view word :
         absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty())) {
      int32_t id = 0;
      if (!absl::SimpleAtoi(word, &id)) {
        return absl::InvalidArgumentError(absl::StrCat(
            path, ", line ", sequences.size() + 1, ": '",
            absl::CHexEscape(word.substr(0, 40)), "' is not an id"));
      }
      sequence.token_ids.push_back(id);
    }
    if (sequence.token_ids.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ", line ", sequences.size() + 1, ": it holds no ids"));
    }
    sequences.push_back(std::move(sequence));
  }
  if (file.bad() || sequences.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, file.bad() ? " cannot be read" : " holds no sequences"));
  }
  return sequences;
}

}  // namespace encoderd
