// What a client refuses before it dials: nobody listens in these tests.
#include "client/cpp/access.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/certificates.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kLocal[] = "localhost:1";
constexpr char kRemote[] = "encoderd.example:8400";

class AccessTest : public ::testing::Test {
 protected:
  // What the client says of options_.
  std::string Refusal(const std::string& target = kLocal) const {
    const auto client = Client::Connect(target, options_);
    if (client.ok()) return "";
    EXPECT_EQ(client.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(client.status().message());
  }
  std::string File(const std::string& name, const std::string& content) const {
    folder_.Write(name, content);
    return folder_.Path(name);
  }
  static std::string Certificate(const std::string& name) {
    return CertificatePath(name);
  }

  const TempFolder folder_;
  ClientOptions options_;
};

TEST_F(AccessTest, EncryptsWhereAFileOfTlsIsGiven) {
  EXPECT_FALSE(UsesTls(options_));
  options_.ca_file = "ca.pem";
  EXPECT_TRUE(UsesTls(options_));
  options_ = {};
  options_.certificate_file = "client.pem";
  EXPECT_TRUE(UsesTls(options_));
  options_ = {};
  options_.tls = true;
  EXPECT_TRUE(UsesTls(options_));
}

TEST_F(AccessTest, TakesGoodFiles) {
  options_.ca_file = Certificate("ca.pem");
  options_.certificate_file = Certificate("client.pem");
  options_.key_file = Certificate("client.key");
  options_.server_name = "localhost";
  options_.token_file = File("token", "secret\n");
  EXPECT_EQ(Refusal(kRemote), "");
}

TEST_F(AccessTest, NamesAFileThatCannotBeRead) {
  const std::string missing = folder_.Path("missing.pem");
  options_.ca_file = missing;
  EXPECT_EQ(Refusal(), absl::StrCat("ca_file \"", missing,
                                    "\" cannot be read: No such file or "
                                    "directory"));
  options_.ca_file = folder_.path();
  EXPECT_EQ(Refusal(), absl::StrCat("ca_file \"", folder_.path(),
                                    "\" cannot be read: Is a directory"));
  options_ = {};
  options_.token_file = missing;
  EXPECT_EQ(Refusal(), absl::StrCat("token_file \"", missing,
                                    "\" cannot be read: No such file or "
                                    "directory"));
}

TEST_F(AccessTest, NamesAFileThatIsTooLarge) {
  const std::string large = File("large", std::string((4 << 20) + 1, 'x'));
  const std::string words =
      absl::StrCat(" \"", large, "\" has more than 4194304 bytes");
  options_.ca_file = large;
  EXPECT_EQ(Refusal(), "ca_file" + words);
  options_ = {};
  options_.token_file = large;
  EXPECT_EQ(Refusal(), "token_file" + words);
}

TEST_F(AccessTest, NamesAFileWithoutWhatItIsFor) {
  const std::string key = Certificate("client.key");
  const std::string certificate = Certificate("client.pem");
  options_.ca_file = key;
  EXPECT_EQ(Refusal(), absl::StrCat("ca_file \"", key,
                                    "\" has no certificate in PEM (-----BEGIN "
                                    "CERTIFICATE-----)"));
  options_ = {};
  options_.certificate_file = key;
  options_.key_file = key;
  EXPECT_THAT(Refusal(),
              HasSubstr(absl::StrCat("certificate_file \"", key,
                                     "\" has no certificate in PEM")));
  options_.certificate_file = certificate;
  options_.key_file = certificate;
  EXPECT_THAT(Refusal(),
              HasSubstr(absl::StrCat("key_file \"", certificate,
                                     "\" has no private key in PEM")));
}

TEST_F(AccessTest, RefusesCertificatesAndKeysThatAreDamaged) {
  const std::string certificate = File(
      "bad.pem", "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----");
  options_.ca_file = certificate;
  EXPECT_EQ(Refusal(), absl::StrCat("ca_file \"", certificate,
                                    "\" has a damaged certificate"));
  options_ = {};
  options_.certificate_file = Certificate("client.pem");
  for (const char* label : {"PRIVATE KEY", "ENCRYPTED PRIVATE KEY"}) {
    options_.key_file =
        File("bad.key", absl::StrCat("-----BEGIN ", label,
                                     "-----\nAA\n-----END ", label, "-----\n"));
    EXPECT_EQ(Refusal(), absl::StrCat("key_file \"", options_.key_file,
                                      "\" has a key that is damaged or needs "
                                      "a passphrase: give one without"));
  }
}

TEST_F(AccessTest, RefusesAKeyOfAnotherCertificate) {
  options_.certificate_file = Certificate("client.pem");
  options_.key_file = Certificate("server.key");
  EXPECT_EQ(Refusal(), absl::StrCat("key_file \"", options_.key_file,
                                    "\" is not the key of certificate_file \"",
                                    options_.certificate_file, "\""));
}

TEST_F(AccessTest, RefusesHalfAPair) {
  options_.certificate_file = "client.pem";
  EXPECT_EQ(Refusal(),
            "certificate_file \"client.pem\" needs key_file: give both or "
            "none");
  options_ = {};
  options_.key_file = "client.key";
  EXPECT_EQ(Refusal(),
            "key_file \"client.key\" needs certificate_file: give both or "
            "none");
}

TEST_F(AccessTest, RefusesOptionsThatContradictEachOther) {
  options_.tls = false;
  options_.ca_file = "ca.pem";
  EXPECT_EQ(Refusal(),
            "ca_file \"ca.pem\" is for TLS, but tls is false: turn tls on or "
            "leave ca_file out");
  options_ = {};
  options_.tls = false;
  options_.certificate_file = "client.pem";
  options_.key_file = "client.key";
  EXPECT_THAT(Refusal(), HasSubstr("certificate_file \"client.pem\" is for "
                                   "TLS, but tls is false"));
  options_ = {};
  options_.server_name = "example.com";
  EXPECT_THAT(Refusal(), HasSubstr("server_name \"example.com\" is for TLS, "
                                   "but tls is not set"));
  options_ = {};
  options_.token = "secret";
  options_.token_file = "token";
  EXPECT_EQ(Refusal(), "both token and token_file are set; use one");
}

TEST_F(AccessTest, RefusesAnythingBesidesCredentialsOfTheCallers) {
  options_.credentials = grpc::InsecureChannelCredentials();
  EXPECT_EQ(Refusal(), "");
  options_.tls = true;
  EXPECT_THAT(Refusal(), HasSubstr("both credentials and tls are set"));
  options_.tls = std::nullopt;
  options_.ca_file = "ca.pem";
  EXPECT_THAT(Refusal(), HasSubstr("both credentials and ca_file are set"));
  options_.ca_file = "";
  options_.token = "secret";
  EXPECT_THAT(Refusal(), HasSubstr("both credentials and token are set"));
}

TEST_F(AccessTest, ReadsTheFirstLineOfATokenFile) {
  for (const char* content :
       {"secret", "secret\n", " \tsecret \r\nmore\n", "secret\n\n"}) {
    options_.token_file = File("token", content);
    const auto access = ReadAccess(kLocal, options_);
    ASSERT_THAT(access, IsOk());
    EXPECT_EQ(access->token, "secret");
  }
}

TEST_F(AccessTest, RefusesATokenThatNoHeaderCarriesAndDoesNotShowIt) {
  options_.token = "";
  EXPECT_EQ(Refusal(), "token is empty: it must hold a token");
  for (const char* token : {"se cret", "secret\n",
                            "s\xc3\xa9"
                            "cret"}) {
    options_.token = token;
    EXPECT_THAT(Refusal(),
                HasSubstr("token has a character that a header cannot carry"));
    EXPECT_THAT(Refusal(), Not(HasSubstr("cret")));
  }
  options_ = {};
  for (const char* content : {"", "\nsecret\n", "  \n"}) {
    options_.token_file = File("empty", content);
    EXPECT_EQ(Refusal(), absl::StrCat("the first line of token_file \"",
                                      options_.token_file,
                                      "\" is empty: it must hold a token"));
  }
  options_.token_file = File("two", "one two\n");
  EXPECT_THAT(Refusal(),
              HasSubstr(absl::StrCat("token_file \"", options_.token_file,
                                     "\" has a character")));
  EXPECT_THAT(Refusal(), HasSubstr("at byte 4"));
}

TEST_F(AccessTest, RefusesATokenThatIsLongerThanAServerTakes) {
  const std::string most(4096, 'x');
  const std::string words = " has 4097 bytes; a token has at most 4096";
  options_.token = most;
  EXPECT_EQ(Refusal(), "");
  options_.token = most + "x";
  EXPECT_EQ(Refusal(), "token" + words);
  options_ = {};
  options_.token_file = File("token", most + "x\n");
  EXPECT_EQ(Refusal(), absl::StrCat("the first line of token_file \"",
                                    options_.token_file, "\"", words));
}

TEST_F(AccessTest, KeepsATokenOffANetworkThatIsNotEncrypted) {
  options_.token = "secret";
  EXPECT_EQ(Refusal(kLocal), "");
  EXPECT_EQ(Refusal("unix:/run/encoderd"), "");
  EXPECT_EQ(Refusal(kRemote),
            absl::StrCat("the token would be sent unencrypted to ", kRemote,
                         "; use TLS (tls or ca_file)"));
  options_.tls = false;
  EXPECT_THAT(Refusal(kRemote), HasSubstr("unencrypted"));
  options_.tls = true;
  EXPECT_EQ(Refusal(kRemote), "");
  options_ = {};
  options_.token_file = File("token", "secret\n");
  EXPECT_THAT(Refusal(kRemote), HasSubstr("unencrypted"));
}

}  // namespace
}  // namespace encoderd::client
