// A user without rights, for as long as this exists: root may read every file,
// so tests of what may not be read need another. Any other user stays. The
// whole process changes: no other thread may depend on its rights.
#ifndef ENCODERD_TESTS_SUPPORT_UNPRIVILEGED_H_
#define ENCODERD_TESTS_SUPPORT_UNPRIVILEGED_H_

#include <gtest/gtest.h>
#include <unistd.h>

namespace encoderd {

class Unprivileged {
 public:
  Unprivileged() {
    if (user_ != 0) return;
    EXPECT_EQ(::seteuid(kNobody), 0);
  }
  ~Unprivileged() {
    if (user_ != 0) return;
    EXPECT_EQ(::seteuid(0), 0);
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;

  const uid_t user_ = ::geteuid();
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_UNPRIVILEGED_H_
