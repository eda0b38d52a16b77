// While it lives, this process writes no file beyond this many bytes, and gets
// an error (EFBIG) instead of a signal: a full disk for tests.
#ifndef ENCODERD_TESTS_SUPPORT_FILE_SIZE_LIMIT_H_
#define ENCODERD_TESTS_SUPPORT_FILE_SIZE_LIMIT_H_

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

namespace encoderd {

class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit = {bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*const handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before_ = {};
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_FILE_SIZE_LIMIT_H_
