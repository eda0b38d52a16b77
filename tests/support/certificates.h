// Certificates for one test, made by make_certificates.sh (which says what they
// are) once for each test program.
#ifndef ENCODERD_TESTS_SUPPORT_CERTIFICATES_H_
#define ENCODERD_TESTS_SUPPORT_CERTIFICATES_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/read_all.h"
#include "tests/support/temp_folder.h"

namespace encoderd {

class MadeCertificates {
 public:
  MadeCertificates() {
    const std::string command =
        std::string("sh " ENCODERD_MAKE_CERTIFICATES " ") + folder_.path();
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  const std::string& folder() const { return folder_.path(); }

 private:
  const TempFolder folder_;
};

// Removed when the program ends.
inline const std::string& CertificateFolder() {
  static const MadeCertificates certificates;
  return certificates.folder();
}

// Where certificate or key `name` lies: "server.pem", "client.key".
inline std::string CertificatePath(const std::string& name) {
  return CertificateFolder() + "/" + name;
}

inline std::string CertificateText(const std::string& name) {
  return ReadAll(CertificatePath(name));
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_CERTIFICATES_H_
