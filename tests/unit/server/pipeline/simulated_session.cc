#include "absl/strings/str_cat.h"
#include "tests/unit/server/pipeline/simulated_world.h"

namespace encoderd {

SimulatedPauses::SimulatedPauses(Simulation* simulation, int64_t max_tokens)
    : world_(*simulation),
      session_(simulation, max_tokens),
      runner_(&session_, world_.queue_.get(), world_.limits_, simulation,
              VirtualNow) {}

bool SimulatedPauses::Wanted() {
  return world_.queue_->small_waits() && world_.Pick(3) > 0;
}

void SimulatedPauses::Run() noexcept {
  world_.queue_->TakeSmall(session_.max_batch_tokens(), virtual_now, &work_);
  world_.CheckTaken(work_, session_.max_batch_tokens());
  world_.counts_.pauses += work_.taken.empty() ? 0 : 1;
  runner_.Run(&work_);
  work_.taken.clear();
}

// Token 0 of a sequence is its request's number, token 1 its index.
absl::Status SimulatedSession::Run(const PackedBatch& batch,
                                   absl::Span<const SequenceOutput> outputs,
                                   ForwardResult* result) {
  ++world_.counts_.batches;
  world_.Check(batch.num_tokens() <= max_tokens_, "a batch exceeds its tokens");
  if (world_.lost_) return absl::DataLossError("lost");
  bool poisoned = false;
  for (int64_t b = 0; b < batch.num_sequences(); ++b) {
    const int32_t number = batch.token_ids[batch.cu_seqlens[b]];
    const int32_t index = batch.token_ids[batch.cu_seqlens[b] + 1];
    const Story& story = *world_.stories_[number];
    world_.Check(!story.cancelled || story.answers > 0 || !story.call->alive(),
                 "a cancelled call is alive");
    world_.Check(story.call->alive(), "a row of a marked call is computed");
    poisoned |= story.poisoned && index == 0;
  }
  while (pauses_ != nullptr && pauses_->Wanted()) pauses_->Run();
  if (poisoned || world_.fail_next_ > 0) {
    if (world_.fail_next_ > 0) {
      --world_.fail_next_;
      world_.any_failed_ = true;
    }
    ++world_.counts_.retried_batches;
    return absl::InternalError("fault");
  }
  result->values.clear();
  result->offsets.assign(1, 0);
  for (int64_t b = 0; b < batch.num_sequences(); ++b) {
    const int32_t number = batch.token_ids[batch.cu_seqlens[b]];
    const int32_t index = batch.token_ids[batch.cu_seqlens[b] + 1];
    world_.Check(world_.stories_[number]->computed.insert(index).second,
                 absl::StrCat("input ", index, " of request ", number,
                              " is computed twice"));
    result->values.push_back(static_cast<float>(number));
    result->values.push_back(static_cast<float>(index));
    result->offsets.push_back(static_cast<int64_t>(result->values.size()));
  }
  return absl::OkStatus();
}

}  // namespace encoderd
