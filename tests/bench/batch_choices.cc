// What the scheduling chooses on machines of 2, 16 and 64 cores, as tables: no
// clock, nothing is computed. Texts wait and every Session is idle: into which
// batches they go, and how many cores each pass gets of the team. Then, of a
// pass that has all cores: into which parts its products are divided, and the
// work of the largest, in equal shares of all cores.
//   batch_choices
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/device/cpu/op_parts.h"
#include "engine/device/cpu/team.h"
#include "server/pipeline/batch_policy.h"
#include "tests/bench/workload.h"

namespace encoderd {
namespace {

constexpr int64_t kBatchTokens = 1024;  // as a CPU has it, and pipeline.cc
constexpr FairShares kShares = {kBatchTokens / 4, kBatchTokens, 128};

struct Texts {
  std::string name;
  std::vector<int32_t> lengths;  // each a call of a different caller
};

std::vector<Texts> AllTexts() {
  std::vector<Texts> all;
  for (const int count : {1, 8, 64, 1000}) {
    for (const int32_t length : {16, 128, 512}) {
      all.push_back({absl::StrCat(count, " x ", length),
                     std::vector<int32_t>(count, length)});
    }
  }
  all.push_back({"mix of 8192 tokens", WorkloadLengths("mix", 8192)});
  return all;
}

// The first batch of each Session until nothing waits; tokens of each.
std::vector<int64_t> FirstBatches(const Texts& texts, int cores,
                                  int64_t* waiting) {
  BatchPolicy policy(kShares);
  uint64_t id = 0;
  for (const int32_t length : texts.lengths) {
    ++id;
    policy.Add(id, id, absl::InfiniteFuture(), {length});
  }
  std::vector<int64_t> batches;
  for (int idle = cores; idle > 0 && !policy.empty(); --idle) {
    BatchLimits limits;
    limits.max_tokens = kBatchTokens;
    limits.min_tokens = kBatchTokens / 8;
    limits.min_idle_tokens = 128;  // kMinIdleTokensOfACpu of pipeline.cc
    limits.sessions = cores;
    limits.idle_sessions = idle;
    batches.push_back(policy.Next(limits, absl::UnixEpoch()).tokens);
  }
  *waiting = policy.waiting_tokens();
  return batches;
}

// The cores of each pass once each has run an op or two.
std::vector<int64_t> CoresOf(const std::vector<int64_t>& batches, int cores) {
  const size_t passes = batches.size();
  cpu::Team team(cores);
  for (int i = 0; i < cores; ++i) team.Join();
  std::vector<std::unique_ptr<cpu::Team::Pass>> all;
  std::vector<int64_t> parts(passes, 0);
  for (size_t i = 0; i < passes; ++i)
    all.push_back(std::make_unique<cpu::Team::Pass>(&team));
  for (int op = 0; op < 2; ++op) {
    for (size_t i = 0; i < passes; ++i) {
      parts[i] = all[i]->Threads(cpu::MostRowParts(batches[i]));
    }
  }
  return parts;
}

std::string Range(const std::vector<int64_t>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *least == *most ? absl::StrCat(*least)
                         : absl::StrCat(*least, " to ", *most);
}

void Print(int cores) {
  for (const Texts& texts : AllTexts()) {
    int64_t waiting = 0;
    const std::vector<int64_t> batches = FirstBatches(texts, cores, &waiting);
    const std::vector<int64_t> parts = CoresOf(batches, cores);
    std::cout << absl::StrJoin<std::vector<std::string>>(
                     {absl::StrCat("| ", cores), texts.name,
                      absl::StrCat(batches.size()), Range(batches),
                      Range(parts),
                      absl::StrCat(std::accumulate(parts.begin(), parts.end(),
                                                   int64_t{0})),
                      absl::StrCat(waiting)},
                     " | ")
              << " |\n";
  }
}

// Products with panels of 64 columns: of 384, 1152 and 1536.
void PrintParts(int cores) {
  for (const int64_t rows : {16, 128, 512}) {
    for (const int64_t panels : {6, 18, 24}) {
      const cpu::ProductSize size = {rows, panels};
      const cpu::ProductGrid grid = cpu::GridOf(size, cores);
      int64_t largest = 0;
      for (int32_t part = 0; part < grid.parts(); ++part) {
        const cpu::ProductBlock some = cpu::PartOf(grid, size, part);
        largest = std::max(largest, some.rows.count * some.panels.count);
      }
      std::cout << absl::StrFormat("| %d | %d | %d | %d x %d | %d | %.2f |\n",
                                   cores, rows, panels, grid.row_parts,
                                   grid.panel_parts, grid.slices(),
                                   static_cast<double>(largest * cores) /
                                       static_cast<double>(rows * panels));
    }
  }
}

}  // namespace
}  // namespace encoderd

int main() {
  std::cout
      << "| cores | texts | batches | tokens of each | cores of each | "
         "cores busy | tokens that wait |\n|---|---|---|---|---|---|---|\n";
  for (const int cores : {2, 16, 64}) encoderd::Print(cores);
  std::cout << "\n| cores | rows | panels | parts, by rows x by panels | "
               "slices of each | largest part, in equal shares |\n"
               "|---|---|---|---|---|---|\n";
  for (const int cores : {2, 16, 64}) encoderd::PrintParts(cores);
  return 0;
}
