#include "server/security/secrets.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "tests/support/certificates.h"
#include "tests/support/patience.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr char kAlpha[] =
    "a 8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8\n";
constexpr char kBeta[] =
    "b f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753\n";

// A folder with a certificate, its key and tokens, to be replaced.
class SecretsTest : public ::testing::Test {
 protected:
  SecretsTest() {
    Use("server");
    folder_.Write("tokens", kAlpha);
    files_.certificates.certificate = folder_.Path("tls.pem");
    files_.certificates.key = folder_.Path("tls.key");
    files_.tokens = folder_.Path("tokens");
  }
  void Use(const std::string& name) {
    folder_.Write("tls.pem", CertificateText(name + ".pem"));
    folder_.Write("tls.key", CertificateText(name + ".key"));
  }
  std::unique_ptr<Secrets> Open() {
    auto secrets = Secrets::Open(files_);
    EXPECT_THAT(secrets, IsOk());
    return secrets.ok() ? *std::move(secrets) : nullptr;
  }

  TempFolder folder_;
  SecretFiles files_;
};

TEST_F(SecretsTest, WithoutFilesThereIsNothing) {
  files_ = SecretFiles();
  const auto secrets = Open();
  EXPECT_EQ(secrets->certificates(), nullptr);
  EXPECT_EQ(secrets->tokens(), nullptr);
  secrets->Reload();
  EXPECT_EQ(secrets->certificate_reloads().failed, 0);
}

TEST_F(SecretsTest, WhatIsWrongAtFirstEndsTheStart) {
  folder_.Write("tokens", "a b");
  EXPECT_THAT(
      Secrets::Open(files_).status(),
      IsError(kInvalid, absl::StrCat("--bearer_token_file=", files_.tokens,
                                     ": line 1: field 2")));
  folder_.Write("tls.key", "");
  EXPECT_THAT(Secrets::Open(files_).status(),
              IsError(kInvalid, "tls.key: is empty"));
}

TEST_F(SecretsTest, ReplacedFilesAreReadByThemselves) {
  const auto secrets = Open();
  Use("server2");
  folder_.Write("tokens", kBeta);
  EXPECT_TRUE(Eventually([&] {
    return secrets->certificates()->certificate ==
               CertificateText("server2.pem") &&
           secrets->tokens()->Find("beta") != nullptr;
  }));
  EXPECT_EQ(secrets->tokens()->Find("alpha"), nullptr);
  EXPECT_EQ(secrets->certificate_reloads().good, 1);
  EXPECT_EQ(secrets->token_reloads().good, 1);
}

// As Kubernetes replaces them: a link to a folder is exchanged.
TEST_F(SecretsTest, ExchangedLinksAreNoticed) {
  namespace fs = std::filesystem;
  folder_.Write("old/tls.pem", CertificateText("server.pem"));
  folder_.Write("old/tls.key", CertificateText("server.key"));
  folder_.Write("new/tls.pem", CertificateText("server2.pem"));
  folder_.Write("new/tls.key", CertificateText("server2.key"));
  fs::create_directory_symlink("old", folder_.Path("data"));
  files_.certificates = {folder_.Path("data/tls.pem"),
                         folder_.Path("data/tls.key"), ""};
  const auto secrets = Open();
  fs::create_directory_symlink("new", folder_.Path("next"));
  fs::rename(folder_.Path("next"), folder_.Path("data"));
  EXPECT_TRUE(Eventually([&] {
    return secrets->certificates()->certificate ==
           CertificateText("server2.pem");
  }));
}

TEST_F(SecretsTest, BadFilesAreCountedAndChangeNothing) {
  const auto secrets = Open();
  const auto before = secrets->certificates();
  const auto tokens = secrets->tokens();
  folder_.Write("tls.pem", CertificateText("expired.pem"));
  folder_.Write("tls.key", CertificateText("expired.key"));
  ASSERT_EQ(unlink(files_.tokens.c_str()), 0);
  ASSERT_TRUE(Eventually([&] {
    return secrets->certificate_reloads().failing &&
           secrets->token_reloads().failing;
  }));
  EXPECT_EQ(secrets->certificates(), before);
  EXPECT_EQ(secrets->tokens(), tokens);
  EXPECT_GE(secrets->certificate_reloads().failed, 1);

  Use("server2");
  folder_.Write("tokens", kBeta);
  EXPECT_TRUE(Eventually([&] {
    return !secrets->certificate_reloads().failing &&
           !secrets->token_reloads().failing;
  }));
  EXPECT_EQ(secrets->certificates()->certificate,
            CertificateText("server2.pem"));
}

TEST_F(SecretsTest, ReloadReadsAtOnce) {
  const auto secrets = Open();
  folder_.Write("tokens", kBeta);
  secrets->Reload();
  EXPECT_NE(secrets->tokens()->Find("beta"), nullptr);
  EXPECT_EQ(secrets->certificate_reloads().good, 1);
}

// The rule itself, look by look.
TEST_F(SecretsTest, FilesAreReadOnceTheyLookTheSameTwice) {
  ChangeRule rule({folder_.Path("one"), folder_.Path("two")});
  EXPECT_FALSE(rule.Look());
  folder_.Write("one", "1");
  EXPECT_FALSE(rule.Look());
  folder_.Write("two", "2");  // between two looks: the first was too early
  EXPECT_FALSE(rule.Look());
  EXPECT_TRUE(rule.Look());
  EXPECT_FALSE(rule.Look());
  folder_.Write("one", "longer");
  rule.Taken();
  EXPECT_FALSE(rule.Look());
  EXPECT_FALSE(rule.Look());
}

}  // namespace
}  // namespace encoderd
