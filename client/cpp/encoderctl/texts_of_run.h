// The texts that a command line names, and what a person at it is told of them:
// for commands that read texts, each in its own way. Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_TEXTS_OF_RUN_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_TEXTS_OF_RUN_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/encoderctl/invocation.h"
#include "client/cpp/encoderctl/progress.h"
#include "client/cpp/encoderctl/text_source.h"

namespace encoderd::ctl {

// The texts that the command line names. INVALID_ARGUMENT: see TextSource.
absl::StatusOr<std::unique_ptr<TextSource>> OpenTexts(
    const Invocation& invocation);
// FAILED_PRECONDITION: what to say where there were none.
absl::Status NoTexts(const Invocation& invocation);
// Under --on_error=skip: names a bad text, the `skipped`th; the first 100 only.
void NoteSkipped(const Invocation& invocation, int64_t skipped,
                 const std::string& name, const absl::Status& error);
// For a person who is to see how the work goes on; else silent. `before`: see
// ProgressLine.
Progress MakeProgress(const Invocation& invocation, double before = 0);
// Tells a person waiting at a silent terminal what it waits for.
void ExplainSilence(const Invocation& invocation);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_TEXTS_OF_RUN_H_
