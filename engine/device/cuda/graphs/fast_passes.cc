#include "engine/device/cuda/graphs/fast_passes.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/device/cuda/host/memory.h"

namespace encoderd {
namespace cuda {

FastPasses::FastPasses(Runtime* runtime, bool graphs, bool overlaps)
    : runtime_(runtime), graphs_on_(graphs), overlaps_on_(overlaps) {}

absl::Status FastPasses::Run(const RecordedOps& ops, bool repeats,
                             const OpStream& stream) {
  entry_ = repeats && graphs_on_ ? graphs_.See(ops) : nullptr;
  if (entry_ != nullptr && entry_->graph.get() != nullptr) {
    const int code = runtime_->LaunchGraph(entry_->graph.get(), stream.stream);
    if (code == 0) return absl::OkStatus();
    const absl::Status why = RuntimeError(runtime_, code, "launching a graph");
    if (!CanGoOnAfter(code)) return why;
    LeaveGraphs(why);
  }
  return RunOps(ops, runtime_, stream.WithOverlaps(overlaps_proved_));
}

absl::Status FastPasses::TryFaster(const RecordedOps& ops, const void* results,
                                   int64_t bytes, const PassMemory& memory,
                                   const OpStream& stream) {
  if (entry_ != nullptr) {
    // The first run of a list loads what a capture must find loaded.
    return entry_->seen > 1 && entry_->graph.get() == nullptr
               ? TryGraph(results, bytes, memory, stream)
               : absl::OkStatus();
  }
  if (!overlaps_on_ || overlaps_proved_) return absl::OkStatus();
  const absl::Status status =
      Replay([&] { return RunOps(ops, runtime_, stream.WithOverlaps(true)); },
             results, bytes, memory, stream);
  if (absl::IsDataLoss(status)) return status;
  overlaps_proved_ = status.ok();
  if (!status.ok()) LeaveOverlaps(status);
  return absl::OkStatus();
}

absl::Status FastPasses::TryGraph(const void* results, int64_t bytes,
                                  const PassMemory& memory,
                                  const OpStream& stream) {
  absl::StatusOr<OwnedGraph> graph =
      CaptureOps(entry_->ops, runtime_, stream.WithOverlaps(overlaps_on_));
  absl::Status status = graph.status();
  if (status.ok()) {
    status = Replay(
        [&]() -> absl::Status {
          const int code = runtime_->LaunchGraph(graph->get(), stream.stream);
          return code == 0 ? absl::OkStatus()
                           : RuntimeError(runtime_, code, "trying a graph");
        },
        results, bytes, memory, stream);
  } else if (const int code = runtime_->Synchronize(stream.stream); code != 0) {
    status = RuntimeError(runtime_, code, "trying a graph");
  } else {
    status = NotLost(status);
  }
  if (absl::IsDataLoss(status)) return status;
  if (status.ok()) {
    entry_->graph = *std::move(graph);
  } else if (overlaps_on_) {
    LeaveOverlaps(status);  // the next time without them
  } else {
    LeaveGraphs(status);
  }
  return absl::OkStatus();
}

absl::Status FastPasses::Replay(const std::function<absl::Status()>& launch,
                                const void* results, int64_t bytes,
                                const PassMemory& memory,
                                const OpStream& stream) {
  int code = 0;
  const auto then = [&](int next) { code = code == 0 ? next : code; };
  // What is left out must not be found done by the plain run.
  for (const PassMemory::Piece& piece : memory.scratch)
    then(runtime_->FillWithNaNs(piece.data, piece.bytes, stream.stream));
  if (memory.batch.data != nullptr) {
    const std::vector<char> zeros(memory.batch.bytes);
    then(runtime_->CopyToDeviceAndWait(zeros.data(), memory.batch.bytes,
                                       memory.batch.data));
  }
  const bool copies = memory.output.data != nullptr;
  if (copies) {
    then(runtime_->FillWithNaNs(memory.output.data, memory.output.bytes,
                                stream.stream));
  }
  std::memset(memory.staging, 0xff, bytes);  // NaNs; nothing uses it now
  absl::Status status;
  if (code == 0) status = launch();
  if (copies) {
    then(runtime_->CopyToHost(memory.output.data, bytes, memory.staging,
                              stream.stream));
  }
  // Also after an error: it tells whether the device is lost.
  const int waited = runtime_->Synchronize(stream.stream);
  if (!CanGoOnAfter(waited)) code = waited;
  then(waited);
  if (code != 0) return RuntimeError(runtime_, code, "trying a faster path");
  if (!status.ok()) return NotLost(status);
  return std::memcmp(memory.staging, results, bytes) == 0
             ? absl::OkStatus()
             : absl::InternalError("its bits differ from a plain run");
}

void FastPasses::LeaveGraphs(const absl::Status& why) {
  graphs_on_ = false;
  entry_ = nullptr;
  graphs_.Clear();
  Note(absl::StrCat("continues without CUDA graphs: ", why.message()));
}

void FastPasses::LeaveOverlaps(const absl::Status& why) {
  overlaps_on_ = overlaps_proved_ = false;
  entry_ = nullptr;  // graphs have such launches, too
  graphs_.Clear();
  Note(absl::StrCat("continues without overlapping launches: ", why.message()));
}

void FastPasses::Note(const std::string& text) {
  absl::StrAppend(&note_, note_.empty() ? "a session " : "; ", text);
}

}  // namespace cuda
}  // namespace encoderd
