// A command over a list of texts: source -> client -> writer, with progress,
// in memory that does not grow with the list. Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_JOB_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_JOB_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "client/cpp/encoderctl/invocation.h"
#include "client/cpp/encoderctl/writer.h"

namespace encoderd::ctl {

struct Job {
  const client::Client& client;
  client::InputSource source;  // a line that gives no text is refused
  Writer* writer;
  // To be called before each text's result is written; returns its index.
  std::function<int64_t()> text_done;
  // For a text that has its own error, under --on_error=skip: names its
  // line and writes what takes the place of its result.
  std::function<absl::Status(int64_t index, const absl::Status& error)> skip;
  LongTexts* long_texts;  // told at the end
  // Set by the work where the texts together are none to work on: it is told
  // in the place of results, and an output that is there stays.
  absl::Status unfit = absl::OkStatus();
  // Set by the work that writes one result of all texts: after an error there
  // is no count of texts that are written.
  bool one_result = false;
};

// Opens what the settings name, runs `work`, ends the output, and reports: an
// error names the line of the input that is to blame. While the input is
// silent, results are written as they come. Ctrl-C ends the work; what was
// written before stays. Returns the exit code.
int RunJob(const Invocation& invocation,
           const std::function<absl::Status(Job& job)>& work);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_JOB_H_
