// Memory that OpenSSL lacks while it reads certificates: no fault of the files.
#include <gtest/gtest.h>
#include <openssl/crypto.h>

#include <climits>
#include <cstdlib>

#include "absl/time/clock.h"
#include "server/security/certificates.h"
#include "tests/support/certificates.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

// Of this thread: allocations so far, and how many pass before those that fail.
thread_local int g_made = 0;
thread_local int g_pass = INT_MAX;
thread_local int g_fail = 0;

bool Fails() {
  const int before = g_made++;
  return before >= g_pass && before - g_pass < g_fail;
}

void* Allocate(size_t bytes, const char*, int) {
  return Fails() ? nullptr : std::malloc(bytes);
}
void* Reallocate(void* old, size_t bytes, const char*, int) {
  return Fails() ? nullptr : std::realloc(old, bytes);
}
void Free(void* memory, const char*, int) { std::free(memory); }

// Before OpenSSL allocates anything, or it refuses.
const bool g_replaced =
    CRYPTO_set_mem_functions(&Allocate, &Reallocate, &Free) == 1;

absl::Status ReadWhere(int pass, int fail) {
  const CertificateFiles files = {CertificatePath("server.pem"),
                                  CertificatePath("server.key"),
                                  CertificatePath("ca.pem")};
  g_made = 0;
  g_pass = pass;
  g_fail = fail;
  const absl::Status status = ReadCertificates(files, absl::Now()).status();
  g_fail = 0;
  return status;
}

// OpenSSL does without some of its allocations, and reports the lack of others
// as something else: not each of them is told to be one.
TEST(CertificatesMemoryTest, AFileThatThereIsNoMemoryForMayBeReadLater) {
  ASSERT_TRUE(g_replaced);
  ASSERT_THAT(ReadWhere(0, 0), IsOk());
  ASSERT_THAT(ReadWhere(0, 0), IsOk());  // without what is made once
  const int made = g_made;
  constexpr int kSamples = 100;
  for (const int fail : {1, INT_MAX}) {
    int lacking = 0;
    for (int sample = 0; sample < kSamples; ++sample) {
      const absl::Status status = ReadWhere(made / kSamples * sample, fail);
      if (absl::IsResourceExhausted(status)) {
        ++lacking;
        EXPECT_THAT(status, IsError(absl::StatusCode::kResourceExhausted,
                                    ": no memory for it"));
      } else if (!status.ok()) {
        EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      }
    }
    EXPECT_GT(lacking, fail == 1 ? 0 : kSamples / 2);
  }
  EXPECT_THAT(ReadWhere(0, 0), IsOk());
}

}  // namespace
}  // namespace encoderd
