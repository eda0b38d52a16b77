#include "server/pipeline/small_requests.h"

namespace encoderd {

void SmallRequests::Run() noexcept {
  const absl::Time start = clock_();
  queue_.TakeSmall(max_tokens_, start, &work_);
  runner_.Run(&work_);
  spent_ += clock_() - start;
}

}  // namespace encoderd
