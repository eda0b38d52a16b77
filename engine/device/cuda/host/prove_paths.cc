#include "engine/device/cuda/host/prove_paths.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/device/cuda/attention_path.h"
#include "engine/device/cuda/host/memory.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr AttentionPath kFast[] = {
    AttentionPath::kWarp, AttentionPath::kWhole64, AttentionPath::kWhole128};

// Sorts the outcomes of proofs into what serves and what does not.
class Outcomes {
 public:
  explicit Outcomes(std::vector<std::string>* notes) : notes_(notes) {}

  // Whether `path` serves.
  bool Take(const std::string& path, const std::string& plain,
            const absl::Status& status, const std::string& figures) {
    if (absl::IsDataLoss(status)) lost_ = status;
    if (status.ok()) {
      absl::StrAppend(&serving_, serving_.empty() ? "" : "; ", path, ": ",
                      figures);
    } else {
      notes_->push_back(absl::StrCat(path, " does not serve, ", plain,
                                     " does: ", status.message()));
    }
    return status.ok();
  }
  absl::Status Finish() {
    if (!serving_.empty())
      notes_->push_back(absl::StrCat("proved at start: ", serving_));
    return lost_;
  }
  bool lost() const { return !lost_.ok(); }

 private:
  std::vector<std::string>* const notes_;
  std::string serving_;
  absl::Status lost_;
};

}  // namespace

absl::Status ProvePaths(Runtime* runtime, const ModelSizes& sizes,
                        DType element, Operands operands, FastPaths* paths,
                        std::vector<std::string>* notes,
                        const AttentionStart& attention, NormStart norm) {
  *paths = FastPaths();
  OwnedStream stream;
  Outcomes outcomes(notes);
  const absl::Status taken = stream.Take(runtime);
  if (!taken.ok()) {
    outcomes.Take("a fast path of the kernels", "the plain one", taken, "");
    return outcomes.Finish();
  }
  const int32_t head_size = sizes.head_size();
  // A limited reach has a separate kernel.
  paths->reaches = {Reach()};
  for (const Reach& reach : sizes.reaches) {
    if (std::find(paths->reaches.begin(), paths->reaches.end(), reach) ==
        paths->reaches.end())
      paths->reaches.push_back(reach);
  }
  for (const AttentionPath path : kFast) {
    if (!HasPath(element, head_size, path) || outcomes.lost()) continue;
    absl::Status status;
    std::string figures;
    for (const Reach& reach : paths->reaches) {
      std::string some;
      if (!status.ok()) break;
      status = ProveAttention(runtime, element, head_size,
                              sizes.num_attention_heads, sizes.attention_bias,
                              reach, path, stream.get(), &some, attention);
      absl::StrAppend(&figures, figures.empty() ? "" : ", ", some);
    }
    if (outcomes.Take(absl::StrCat("attention ", PathName(path)),
                      "the general one", status, figures))
      paths->attention_paths |= PathBit(path);
  }
  if (operands == Operands::kE4m3 && !outcomes.lost()) {
    std::string figures;
    const absl::Status status = ProveNormQuantizes(
        runtime, element, sizes.hidden_size, stream.get(), &figures, norm);
    paths->fused_e4m3 = outcomes.Take("add_layer_norm in e4m3", "quantize_rows",
                                      status, figures);
  }
  return outcomes.Finish();
}

}  // namespace cuda
}  // namespace encoderd
