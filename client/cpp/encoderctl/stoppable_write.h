// Writing to a pipe or a terminal that nobody may read: it waits for a reader,
// but not once a signal has asked for the end (signals.h).
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_STOPPABLE_WRITE_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_STOPPABLE_WRITE_H_

#include <cstddef>
#include <streambuf>

#include "absl/strings/string_view.h"

namespace encoderd::ctl {

// A descriptor of the same terminal by which no write blocks, for the rest of
// the process: a terminal may be ready for a byte, and a write of more blocks.
// Those who share `descriptor`, such as the shell, are not affected. Where it
// is no terminal, or cannot be opened again: `descriptor`.
int ReopenTerminal(int descriptor);

// Returns how many of the bytes went out. Fewer than all set errno: to EINTR
// if a signal came (StopOnSignal) and there was no room for a second. A slow
// reader gets all of them. Of a pipe or a terminal that ReopenTerminal gave;
// others may block.
size_t WriteUntilStopped(int descriptor, absl::string_view bytes);

// For a stream over WriteUntilStopped: the first write that fails makes the
// stream bad, and it drops what follows. Keeps nothing back. Not thread-safe.
class StoppableBuffer : public std::streambuf {
 public:
  // Of a descriptor that stays open.
  explicit StoppableBuffer(int descriptor) : descriptor_(descriptor) {}

 protected:
  int_type overflow(int_type byte) override;
  std::streamsize xsputn(const char* bytes, std::streamsize count) override;

 private:
  const int descriptor_;
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_STOPPABLE_WRITE_H_
