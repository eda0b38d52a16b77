// encoderctl embed into an .npy: over EmbedStream, in memory that does not grow
// with the list, resuming an interrupted run of the same work.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_BULK_EMBED_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_BULK_EMBED_H_

#include "client/cpp/encoderctl/invocation.h"

namespace encoderd::ctl {

struct BulkChoices {
  client::EmbedOptions embed;  // on_error FAIL: a bad text ends the run
  bool resume = true;
};

// Writes settings.output and, for int8 and uint8, OUTPUT.scales.npy. While it
// works, OUTPUT.resume says what is done (resume_mark.h). What an earlier run
// left there is touched once the first row is there to take its place. Returns
// the exit code.
int RunBulkEmbed(const Invocation& invocation, const BulkChoices& choices);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_BULK_EMBED_H_
