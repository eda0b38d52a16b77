#include "server/security/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/security/secret_file.h"
#include "tests/support/certificates.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

using ::testing::StartsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

CertificateFiles Files(const std::string& name) {
  return {CertificatePath(name + ".pem"), CertificatePath(name + ".key"), ""};
}

absl::Status Read(const CertificateFiles& files) {
  return ReadCertificates(files, absl::Now()).status();
}

TEST(CertificatesTest, GoodFilesAreRead) {
  CertificateFiles files = Files("server");
  files.client_ca = CertificatePath("ca.pem");
  const auto read = ReadCertificates(files, absl::Now());
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ((*read)->certificate, CertificateText("server.pem"));
  EXPECT_THAT((*read)->key, StartsWith("-----BEGIN PRIVATE KEY-----\n"));
  EXPECT_EQ((*read)->client_ca, CertificateText("ca.pem"));
  EXPECT_EQ((*read)->expires, absl::FromCivil(absl::CivilSecond(2099, 1, 1),
                                              absl::UTCTimeZone()));
  EXPECT_NE((*read)->context, nullptr);
}

// As while authorities are rotated.
TEST(CertificatesTest, AnExpiredClientCaNextToAValidOneIsReadAndShown) {
  const TempFolder folder;
  folder.Write("both.pem",
               CertificateText("ca.pem") + CertificateText("expired_ca.pem"));
  CertificateFiles files = Files("server");
  files.client_ca = folder.Path("both.pem");
  const auto read = ReadCertificates(files, absl::Now());
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(
      (*read)->client_ca_expires,
      absl::FromCivil(absl::CivilSecond(2020, 1, 1), absl::UTCTimeZone()));
  EXPECT_EQ(Describe(**read),
            "expires 2099-01-01 00:00:00 UTC, client CA expires 2020-01-01 "
            "00:00:00 UTC");
}

TEST(CertificatesTest, AChainIsReadWhole) {
  const TempFolder folder;
  folder.Write("chain.pem",
               CertificateText("server.pem") + CertificateText("ca.pem"));
  CertificateFiles files = Files("server");
  files.certificate = folder.Path("chain.pem");
  const auto read = ReadCertificates(files, absl::Now());
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ((*read)->certificate, ReadAll(folder.Path("chain.pem")));
}

TEST(CertificatesTest, AChainExpiresWithItsFirst) {
  const TempFolder folder;
  folder.Write("chain.pem", CertificateText("server.pem") +
                                CertificateText("expired_ca.pem"));
  CertificateFiles files = Files("server");
  files.certificate = folder.Path("chain.pem");
  const auto read = ReadCertificates(files, absl::Now());
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ((*read)->expires, absl::FromCivil(absl::CivilSecond(2020, 1, 1),
                                              absl::UTCTimeZone()));
}

// gRPC would read an engine's name where a key's text begins so.
TEST(CertificatesTest, OnlyWhatWasReadIsHandedOn) {
  const TempFolder folder;
  folder.Write("server.key", "engine:x:y\n" + CertificateText("server.key"));
  folder.Write("server.pem", "words\n" + CertificateText("server.pem"));
  const auto read = ReadCertificates(
      {folder.Path("server.pem"), folder.Path("server.key"), ""}, absl::Now());
  ASSERT_THAT(read, IsOk());
  EXPECT_THAT((*read)->key, StartsWith("-----BEGIN PRIVATE KEY-----\n"));
  EXPECT_EQ((*read)->certificate, CertificateText("server.pem"));
}

TEST(CertificatesTest, AKeyThatNoClientTakesIsRefused) {
  for (const char* rare : {"odd_curve", "p521", "ed25519"}) {
    EXPECT_THAT(Read(Files(rare)),
                IsError(kInvalid, absl::StrCat(rare,
                                               ".pem: cannot be used "
                                               "for TLS 1.")));
  }
  EXPECT_THAT(Read(Files("p384")), IsOk());
}

TEST(CertificatesTest, WhatIsWrongIsNamedWithItsFile) {
  const TempFolder folder;
  const std::string server = CertificateText("server.pem");
  folder.Write("empty.pem", "");
  folder.Write("words.pem", "hello\n");
  folder.Write("cut.pem", server.substr(0, server.size() / 2));
  folder.Write("cut_chain.pem", server + server.substr(0, server.size() / 2));
  folder.Write("large.pem", std::string(kMaxSecretBytes + 1, 'x'));
  folder.Write("locked.key",
               "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n"
               "-----END ENCRYPTED PRIVATE KEY-----\n");
  folder.Write("nul.pem", std::string("\0\n", 2) + server);
  ASSERT_EQ(mkfifo(folder.Path("fifo.pem").c_str(), 0600), 0);
  const CertificateFiles good = Files("server");
  const std::string key = CertificatePath("server.key");
  const struct {
    CertificateFiles files;
    std::string message;
  } kCases[] = {
      {{folder.Path("none.pem"), key, ""}, "none.pem: cannot be read: No such"},
      {{folder.path(), key, ""}, "is not a regular file"},
      {{folder.Path("fifo.pem"), key, ""}, "fifo.pem: is not a regular file"},
      {{folder.Path("empty.pem"), key, ""}, "empty.pem: is empty"},
      {{folder.Path("large.pem"), key, ""}, "more than 1048576 bytes"},
      {{folder.Path("words.pem"), key, ""}, "has no certificate in PEM"},
      {{folder.Path("nul.pem"), key, ""}, "nul.pem: has NUL bytes"},
      {{folder.Path("cut.pem"), key, ""}, "cut.pem: has no certificate"},
      {{folder.Path("cut_chain.pem"), key, ""},
       "cut_chain.pem: is corrupt after certificate 1"},
      {{good.certificate, folder.Path("none.key"), ""},
       "none.key: cannot be read: No such"},
      {{good.certificate, folder.Path("words.pem"), ""}, "has no private key"},
      {{good.certificate, folder.Path("locked.key"), ""}, "without a password"},
      {{good.certificate, CertificatePath("server2.key"), ""},
       "server2.key: is not the key of the certificate in"},
      {Files("expired"), "expired.pem: expired on 2020-01-01 00:00:00 UTC"},
      {Files("future"), "is not valid before 2098-01-01 00:00:00 UTC"},
      {Files("client"), "client.pem: is not valid for servers"},
      {{good.certificate, key, folder.Path("words.pem")},
       "words.pem: has no certificate in PEM"},
      {{good.certificate, key, good.certificate}, "is not a CA"},
      {{good.certificate, key, CertificatePath("expired_ca.pem")},
       "expired_ca.pem: has no CA that is valid now: certificate 1 expired on "
       "2020-01-01 00:00:00 UTC; replace the file"},
      {{good.certificate, key, CertificatePath("future_ca.pem")},
       "certificate 1 is not valid before 2098-01-01 00:00:00 UTC"},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT(Read(test.files), IsError(kInvalid, test.message));
  }
}

}  // namespace
}  // namespace encoderd
