#include "server/pipeline/batch_runner.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/pipeline/errors.h"

namespace encoderd {
namespace {

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

// False: no memory for the values. Those of Encode may be large; the thread and
// the other calls continue.
bool TryDeliver(Call* call, int32_t sequence, absl::Span<const float> values) {
  try {
    call->sequences.Deliver(sequence, values);
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void BatchRunner::Run(Work* work) {
  for (Work::Dropped& dropped : work->dropped) {
    dropped.call->Account(dropped.sequences, clock_());
  }
  work->dropped.clear();
  if (pauses_ != nullptr) session_.SetPauses(work->small ? nullptr : pauses_);
  if (List(work->taken)) {
    if (!members_.empty()) Compute(members_, "");
  } else {
    for (const Work::Taken& taken : work->taken) {
      taken.call->Fail(Call::Fate::kFailed, InternalFaultError(NewErrorId()));
      queue_.Discard(*taken.call);
      taken.call->Account(taken.slice.count, clock_());
    }
  }
  for (Work::Taken& taken : work->taken) taken.call.reset();
}

bool BatchRunner::List(const std::vector<Work::Taken>& all) {
  members_.clear();
  try {
    for (const Work::Taken& taken : all) {
      for (int32_t i = 0; i < taken.slice.count; ++i) {
        members_.push_back({taken.call.get(), taken.slice.first + i, 0});
      }
    }
    return true;
  } catch (...) {
    return false;
  }
}

void BatchRunner::Drop(absl::Span<const Member> members, Stage stage) {
  for (const Member& member : members) {
    if (member.call->fate() == Call::Fate::kGone) {
      observer_.Cancelled(stage, 1);
    }
    member.call->Account(1, clock_());
  }
}

bool BatchRunner::MakeRoom(absl::Span<const Member> members) {
  batch_.Clear();
  outputs_.clear();
  packed_.clear();
  duplicate_tokens_ = 0;
  int64_t tokens = 0;
  for (const Member& member : members) {
    tokens += member.call->sequences.ids(member.sequence).size();
  }
  try {
    duplicates_.Begin(static_cast<int64_t>(members.size()));
    batch_.Reserve(tokens, static_cast<int64_t>(members.size()));
    outputs_.reserve(members.size());
    packed_.reserve(members.size());
    return true;
  } catch (...) {
    return false;
  }
}

void BatchRunner::Pack(absl::Span<const Member> members) {
  if (!MakeRoom(members)) {
    for (const Member& member : members) {
      Fail(member, InternalFaultError(NewErrorId()));
    }
    Drop(members, Stage::kBatch);
    return;
  }
  for (const Member& member : members) {
    if (!member.call->alive()) {
      Drop({&member, 1}, Stage::kBatch);
      continue;
    }
    const Sequences& sequences = member.call->sequences;
    const TokenSequence& ids = sequences.ids(member.sequence);
    if (ids.size() < 1 || ids.size() > limits_.max_len) {
      // A bug in the code that admitted it: no device gets more than max_len.
      Fail(member, InternalFaultError(NewErrorId()));
      Drop({&member, 1}, Stage::kBatch);
      continue;
    }
    const SequenceOutput output = sequences.output(member.sequence);
    const int32_t row = duplicates_.RowOf(ids, output);
    if (row == batch_.num_sequences()) {
      batch_.Append(ids, limits_);
      outputs_.push_back(output);
    } else {
      duplicate_tokens_ += ids.size();
    }
    packed_.push_back({member.call, member.sequence, row});
  }
}

absl::Status BatchRunner::Forward() {
  result_.note.clear();
  const absl::Time start = clock_();
  if (pauses_ != nullptr) pauses_->BeginPass(start);
  absl::Status status;
  // The one place where an exception below becomes a Status.
  try {
    status = session_.Run(batch_, outputs_, &result_);
  } catch (...) {
    status = absl::InternalError("the session threw an exception");
  }
  absl::Duration taken = clock_() - start;
  if (pauses_ != nullptr) taken -= pauses_->spent();
  observer_.StageDuration(Stage::kCompute, taken);
  if (status.ok()) {
    queue_.pace().Computed(batch_.num_tokens() + duplicate_tokens_, taken);
  }
  return status;
}

void BatchRunner::Compute(absl::Span<const Member> members,
                          std::string error_id) {
  const absl::Time packing = clock_();
  Pack(members);
  if (packed_.empty()) return;
  observer_.StageDuration(Stage::kBatch, clock_() - packing);
  const absl::Status status = Forward();
  if (!result_.note.empty()) observer_.DeviceNote(result_.note);
  if (status.ok()) {
    observer_.BatchComputed(batch_.num_tokens(), batch_.num_sequences(),
                            duplicate_tokens_);
    DeliverPacked();
    return;
  }
  const bool lost = status.code() == absl::StatusCode::kDataLoss;
  if (error_id.empty() || lost) {
    if (error_id.empty()) error_id = NewErrorId();
    observer_.DeviceFault(lost, DeviceFaultForLog(status, error_id));
  }
  if (lost) queue_.Lose(error_id);
  std::vector<Member> failed;
  failed.swap(packed_);  // the halves are packed again
  const absl::Span<const Member> all(failed);
  if (lost || all.size() == 1) {
    FailAll(all, lost, error_id);
    return;
  }
  Compute(all.subspan(0, all.size() / 2), error_id);
  Compute(all.subspan(all.size() / 2), error_id);
}

void BatchRunner::FailAll(absl::Span<const Member> members, bool lost,
                          absl::string_view error_id) {
  const absl::Status error =
      DeviceFaultError(absl::StatusCode::kInternal, error_id,
                       "the device failed while computing this request");
  for (const Member& member : members) {
    if (lost) {
      member.call->Fail(Call::Fate::kFailed, error);
    } else {
      Fail(member, error);
    }
    Drop({&member, 1}, Stage::kCompute);
  }
}

void BatchRunner::DeliverPacked() {
  const absl::Time now = clock_();
  int64_t done = 0;  // sequences of the same call, accounted for together
  for (size_t i = 0; i < packed_.size(); ++i) {
    const Member& member = packed_[i];
    const absl::Span<const float> values = result_.Output(member.row);
    if (member.call->fate() == Call::Fate::kGone) {
      observer_.Cancelled(Stage::kCompute, 1);
    } else if (AllFinite(values)) {
      if (!TryDeliver(member.call, member.sequence, values)) {
        Fail(member, InternalFaultError(NewErrorId()));
      }
    } else {
      const std::string error_id = NewErrorId();
      observer_.DeviceFault(
          false, DeviceFaultForLog(absl::InternalError(absl::StrCat(
                                       "a result of ", values.size(),
                                       " values has NaN or infinity")),
                                   error_id));
      Fail(member, DeviceFaultError(
                       absl::StatusCode::kInternal, error_id,
                       "the device returned a result with NaN or infinity"));
    }
    ++done;
    if (i + 1 == packed_.size() || packed_[i + 1].call != member.call) {
      member.call->Account(done, now);
      done = 0;
    }
  }
}

void BatchRunner::Fail(const Member& member, const absl::Status& status) {
  if (member.call->sequences.Fail(member.sequence, status)) return;
  member.call->Fail(Call::Fate::kFailed, status);
  queue_.Discard(*member.call);  // the rest of it is not computed
}

}  // namespace encoderd
