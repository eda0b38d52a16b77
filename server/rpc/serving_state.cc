#include "server/rpc/serving_state.h"

#include "engine/base/error.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/reasons.h"

namespace encoderd {

bool ServingState::Advance(Phase phase) {
  Phase now = phase_.load();
  while (static_cast<int>(now) < static_cast<int>(phase)) {
    if (phase_.compare_exchange_weak(now, phase)) return true;
  }
  return false;
}

bool ServingState::AbandonLoading() {
  Phase loading = Phase::kLoading;
  return phase_.compare_exchange_strong(loading, Phase::kDraining);
}

absl::Status ServingState::Admit() const {
  switch (phase()) {
    case Phase::kServing:
      return absl::OkStatus();
    case Phase::kLoading:
      return MakeError(absl::StatusCode::kUnavailable,
                       "a model is still loading", {reason::kLoading, {}, ""});
    case Phase::kDraining:
    case Phase::kDeviceLost:
      break;
  }
  return DrainingError();
}

}  // namespace encoderd
