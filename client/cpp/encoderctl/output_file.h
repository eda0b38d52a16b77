// What every file that is written for a person needs: one writer at a time, and
// an error that says why. Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_OUTPUT_FILE_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_OUTPUT_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace encoderd::ctl {

// DATA_LOSS: cannot write to `name`, and the system's words for `error`, an
// errno; 0: without.
absl::Status CannotWrite(absl::string_view name, int error);

// NOT_FOUND: `name` cannot be opened for writing: the same words, for `error`
// of open.
absl::Status CannotOpen(absl::string_view name, int error);

// Whether `path` still names the open file, and not one that took its place.
bool Names(const std::string& path, int descriptor);

// NOT_FOUND if `path`, as of --output, cannot be written, as far as rights
// tell: nothing is opened or made.
absl::Status CheckWritable(const std::string& path);

// Whether it says that whoever read the output is gone, as `head` is after its
// last line: no error, but nothing is left to do.
bool IsBrokenPipe(const absl::Status& status);

// FAILED_PRECONDITION if two of the files of one run are the same file, by a
// link: the output, and those that go with it.
absl::Status CheckDistinct(const std::vector<std::string>& files);

// What becomes of a symbolic link that has the name of a file to write.
enum class Links {
  kFollow,  // the person's own name for the output
  kRefuse,  // files that encoderctl names write to nothing else
};

// One run at a time writes a file: held by the system, for as long as this
// lives, whatever becomes of the process.
class OutputLock {
 public:
  OutputLock() = default;
  // Takes the file away again if it was made here and nothing was written.
  ~OutputLock();
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

  // Makes the file if it is not there; leaves alone what is in it. NOT_FOUND if
  // it cannot be opened; FAILED_PRECONDITION if it is no regular file, or a
  // link that is refused; ABORTED while another run holds it. Once only.
  absl::Status Take(const std::string& path, Links links = Links::kFollow);

  // Whether the file was there before.
  bool found() const { return !made_; }

 private:
  std::string path_;
  int descriptor_ = -1;
  bool made_ = false;
};

// Puts `bytes` in the place of what the file holds, under an OutputLock. Where
// the disk has no room, the file is left as it was; one that is written in part
// all the same is removed, or emptied behind a link. What is no regular file,
// such as a device, is only written to. NOT_FOUND, ABORTED as of
// OutputLock::Take; else DATA_LOSS.
absl::Status ReplaceFile(const std::string& path, absl::string_view bytes);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_OUTPUT_FILE_H_
