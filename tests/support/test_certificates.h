// The certificates of make_certificates.sh, made once for a test's process.
// ENCODERD_SOURCE_DIR names the sources.
#ifndef ENCODERD_TESTS_SUPPORT_TEST_CERTIFICATES_H_
#define ENCODERD_TESTS_SUPPORT_TEST_CERTIFICATES_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/temp_folder.h"

namespace encoderd {

class TestCertificates {
 public:
  static const TestCertificates& Get() {
    static const TestCertificates certificates;
    return certificates;
  }

  const std::string& folder() const { return folder_.path(); }
  // "server.pem", "client.key", ...
  std::string Path(const std::string& name) const { return folder_.Path(name); }

 private:
  TestCertificates() {
    const std::string command = std::string(ENCODERD_SOURCE_DIR) +
                                "/tests/support/make_certificates.sh '" +
                                folder_.path() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }

  const TempFolder folder_;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_TEST_CERTIFICATES_H_
