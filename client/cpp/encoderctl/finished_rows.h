// The rows that an interrupted run left, and whether a new run can resume them:
// of the same model, options and texts, as that run wrote them.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_FINISHED_ROWS_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_FINISHED_ROWS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/cpp/encoderctl/row_file.h"
#include "client/cpp/encoderctl/text_source.h"

namespace encoderd::ctl {

// What a run works on.
struct ResumableWork {
  std::string output;
  std::string marks;   // path of the marks (resume_mark.h)
  std::string scales;  // path; empty: rows have none
  std::string work;    // MarkWork
  RowLayout layout;
  bool skips = false;  // bad texts
};

struct FinishedRows {
  int64_t rows = 0;
  int64_t skipped = 0;  // of them
};

// The rows that an interrupted run of the same work left, whose texts `source`
// has then passed over. FAILED_PRECONDITION if what is there is not this run's
// to throw away; the source's own errors.
absl::StatusOr<FinishedRows> FindFinishedRows(const ResumableWork& run,
                                              TextSource* source);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_FINISHED_ROWS_H_
