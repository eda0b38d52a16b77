#include "server/pipeline/small_requests.h"

namespace encoderd {

void SmallRequests::Run() {
  const absl::Time start = clock_();
  queue_.TakeSmall(max_tokens_, start, &work_);
  runner_.Run(&work_);
  work_.taken.clear();
  spent_ += clock_() - start;
}

}  // namespace encoderd
