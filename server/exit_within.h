// The end of a process, whatever its threads still do.
#ifndef ENCODERD_SERVER_EXIT_WITHIN_H_
#define ENCODERD_SERVER_EXIT_WITHIN_H_

#include "absl/time/time.h"

namespace encoderd {

// Ends the process with `code`, without destructors, if it still runs after
// `patience`. Without a thread for that it does nothing.
void ExitWithin(absl::Duration patience, int code);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_EXIT_WITHIN_H_
