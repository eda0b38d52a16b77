#include "server/pipeline/batch_runner.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "server/pipeline/errors.h"

namespace encoderd {
namespace {

using Stage = PipelineObserver::Stage;

bool AllFinite(absl::Span<const float> values) {
  // An exponent of all ones is NaN or infinity; no branch in the loop.
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t broken = 0;
  for (const float& value : values) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    broken |= static_cast<uint32_t>((bits & kExponent) == kExponent);
  }
  return broken == 0;
}

// False: there is no memory for the values. Those of Encode may be large; the
// thread and the other calls go on.
bool TryDeliver(Call* call, int32_t unit, absl::Span<const float> values) {
  try {
    call->Deliver(unit, values);
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void BatchRunner::Run(Work* work) {
  for (Work::Dropped& dropped : work->dropped) {
    dropped.call->Account(dropped.inputs, clock_());
  }
  work->dropped.clear();
  rows_.clear();
  for (const Work::Part& part : work->parts) {
    for (int32_t i = 0; i < part.count; ++i) {
      rows_.push_back({part.call.get(), part.first + i});
    }
  }
  if (!rows_.empty()) Compute(rows_, "");
  for (Work::Part& part : work->parts) part.call.reset();
}

void BatchRunner::DropRows(absl::Span<const Row> rows, Stage stage) {
  for (const Row& row : rows) {
    if (row.call->fate() == Call::Fate::kGone) observer_.Cancelled(stage, 1);
    row.call->Account(1, clock_());
  }
}

void BatchRunner::Pack(absl::Span<const Row> rows) {
  batch_.Clear();
  outputs_.clear();
  packed_rows_.clear();
  for (const Row& row : rows) {
    if (!row.call->alive()) {
      DropRows({&row, 1}, Stage::kBatch);
      continue;
    }
    batch_.Append(row.call->sequence(row.unit), limits_);
    outputs_.push_back(row.call->output(row.unit));
    packed_rows_.push_back(row);
  }
}

absl::Status BatchRunner::Forward() {
  result_.note.clear();
  // The one place where an exception below becomes a Status.
  try {
    return session_.Run(batch_, outputs_, &result_);
  } catch (...) {
    return absl::InternalError("the session threw an exception");
  }
}

void BatchRunner::Compute(absl::Span<const Row> rows, std::string error_id) {
  const absl::Time packing = clock_();
  Pack(rows);
  if (packed_rows_.empty()) return;
  const absl::Time start = clock_();
  observer_.StageDuration(Stage::kBatch, start - packing);
  const absl::Status status = Forward();
  observer_.StageDuration(Stage::kCompute, clock_() - start);
  if (!result_.note.empty()) observer_.DeviceNote(result_.note);
  if (status.ok()) {
    observer_.BatchComputed(batch_.num_tokens(), batch_.num_sequences());
    DeliverPacked();
    return;
  }
  const bool lost = status.code() == absl::StatusCode::kDataLoss;
  if (error_id.empty() || lost) {
    if (error_id.empty()) error_id = NewErrorId();
    observer_.DeviceFault(lost, DeviceFaultForLog(status, error_id));
  }
  if (lost) queue_.Lose(error_id);
  const std::vector<Row> failed = packed_rows_;
  if (lost || failed.size() == 1) {
    for (const Row& row : failed) {
      constexpr char kWhat[] = "the device failed while computing this request";
      if (lost) {
        row.call->Fail(
            Call::Fate::kFailed,
            DeviceFaultError(absl::StatusCode::kInternal, error_id, kWhat));
      } else {
        FailRow(row,
                DeviceFaultError(absl::StatusCode::kInternal, error_id, kWhat));
      }
      DropRows({&row, 1}, Stage::kCompute);
    }
    return;
  }
  const absl::Span<const Row> all(failed);
  Compute(all.subspan(0, all.size() / 2), error_id);
  Compute(all.subspan(all.size() / 2), error_id);
}

void BatchRunner::DeliverPacked() {
  const absl::Time now = clock_();
  int64_t done = 0;  // inputs of the same call, accounted for together
  for (size_t b = 0; b < packed_rows_.size(); ++b) {
    const Row& row = packed_rows_[b];
    const absl::Span<const float> values = result_.Output(b);
    if (row.call->fate() == Call::Fate::kGone) {
      observer_.Cancelled(Stage::kCompute, 1);
    } else if (AllFinite(values)) {
      if (!TryDeliver(row.call, row.unit, values)) {
        FailRow(row, InternalFaultError(NewErrorId()));
      }
    } else {
      const std::string error_id = NewErrorId();
      observer_.DeviceFault(
          false, DeviceFaultForLog(absl::InternalError(absl::StrCat(
                                       "a result of ", values.size(),
                                       " values has NaN or infinity")),
                                   error_id));
      FailRow(row,
              DeviceFaultError(absl::StatusCode::kInternal, error_id,
                               "the device gave a result that is no number"));
    }
    ++done;
    if (b + 1 == packed_rows_.size() || packed_rows_[b + 1].call != row.call) {
      row.call->Account(done, now);
      done = 0;
    }
  }
}

void BatchRunner::FailRow(const Row& row, const absl::Status& status) {
  if (row.call->FailUnit(row.unit, status)) return;
  queue_.Discard(*row.call);  // the rest of it is not computed any more
}

}  // namespace encoderd
