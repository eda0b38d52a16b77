// encoderctl's flags and variables of encryption and token.
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/access.h"
#include "client/cpp/encoderctl/access_flags.h"
#include "client/cpp/encoderctl/commands.h"
#include "client/cpp/encoderctl/encoderctl.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/certificates.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd::ctl {
namespace {

using encoderd::testing::FakeDoor;
using encoderd::testing::FakeEncoderService;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Path(const std::string& name) { return CertificatePath(name); }

FakeDoor MutualWithToken() {
  FakeDoor door;
  door.certificates = CertificateFolder();
  door.asks_certificate = true;
  door.token = "right-token";
  return door;
}

class AccessFlagsTest : public ::testing::Test {
 protected:
  // What the command line and `variables_` make of the options.
  absl::Status Fill(const std::vector<std::string>& arguments) {
    AccessFlags access;
    Flags flags;
    access.AddTo(&flags);
    std::vector<std::string> positional;
    const absl::Status parsed = flags.Parse(arguments, &positional);
    if (!parsed.ok()) return parsed;
    options_ = {};
    return access.Fill(variables_, &options_);
  }

  Variables variables_;
  client::ClientOptions options_;
};

TEST_F(AccessFlagsTest, LeavesEverythingUnsetByDefault) {
  ASSERT_THAT(Fill({}), IsOk());
  EXPECT_FALSE(options_.tls.has_value());
  EXPECT_EQ(options_.ca_file, "");
  EXPECT_FALSE(options_.token.has_value());
  EXPECT_EQ(options_.token_file, "");
}

TEST_F(AccessFlagsTest, TakesDefaultsFromTheEnvironment) {
  variables_ = {{"ENCODERD_TLS", "yes"},
                {"ENCODERD_CA_FILE", "ca.pem"},
                {"ENCODERD_CERTIFICATE_FILE", "client.pem"},
                {"ENCODERD_KEY_FILE", "client.key"},
                {"ENCODERD_TOKEN", "secret"},
                {"ENCODERD_SERVER_NAME", "name"}};
  ASSERT_THAT(Fill({}), IsOk());
  EXPECT_EQ(options_.tls, true);
  EXPECT_EQ(options_.ca_file, "ca.pem");
  EXPECT_EQ(options_.certificate_file, "client.pem");
  EXPECT_EQ(options_.key_file, "client.key");
  EXPECT_EQ(options_.token, "secret");
  EXPECT_EQ(options_.server_name, "name");
  variables_ = {{"ENCODERD_TOKEN_FILE", "token"}, {"ENCODERD_TOKEN", ""}};
  ASSERT_THAT(Fill({}), IsOk());
  EXPECT_EQ(options_.token_file, "token");
  EXPECT_FALSE(options_.token.has_value());
}

TEST_F(AccessFlagsTest, LetsFlagsWinOverTheEnvironment) {
  variables_ = {{"ENCODERD_TLS", "0"},
                {"ENCODERD_CA_FILE", "other.pem"},
                {"ENCODERD_TOKEN", "other"},
                {"ENCODERD_TOKEN_FILE", "other"}};
  ASSERT_THAT(Fill({"--ca_file=ca.pem", "--token_file=token"}), IsOk());
  EXPECT_TRUE(client::UsesTls(options_));
  EXPECT_EQ(options_.ca_file, "ca.pem");
  EXPECT_EQ(options_.token_file, "token");
  EXPECT_FALSE(options_.token.has_value());
  ASSERT_THAT(Fill({"--tls", "--ca_file=", "--token_file="}), IsOk());
  EXPECT_EQ(options_.tls, true);
  EXPECT_EQ(options_.ca_file, "");
  EXPECT_EQ(options_.token_file, "");
}

TEST_F(AccessFlagsTest, IgnoresFilesOfTheEnvironmentWhereTlsIsOff) {
  variables_ = {{"ENCODERD_CA_FILE", "ca.pem"},
                {"ENCODERD_SERVER_NAME", "name"}};
  ASSERT_THAT(Fill({"--tls=no"}), IsOk());
  EXPECT_EQ(options_.tls, false);
  EXPECT_EQ(options_.ca_file, "");
  EXPECT_EQ(options_.server_name, "");
  variables_["ENCODERD_TLS"] = "False";
  ASSERT_THAT(Fill({}), IsOk());
  EXPECT_FALSE(client::UsesTls(options_));
}

TEST_F(AccessFlagsTest, NamesVariablesThatCannotBeFollowed) {
  variables_ = {{"ENCODERD_TLS", "maybe"}};
  EXPECT_THAT(Fill({}), IsError(absl::StatusCode::kInvalidArgument,
                                "ENCODERD_TLS is \"maybe\"; it takes 1 or 0, "
                                "true or false, yes or no"));
  variables_ = {{"ENCODERD_TOKEN", "secret"}, {"ENCODERD_TOKEN_FILE", "token"}};
  const absl::Status both = Fill({});
  EXPECT_THAT(both, IsError(absl::StatusCode::kInvalidArgument,
                            "both ENCODERD_TOKEN and ENCODERD_TOKEN_FILE are "
                            "set; use one"));
  EXPECT_THAT(std::string(both.message()), Not(HasSubstr("secret")));
}

class EncoderctlAccessTest : public ::testing::Test {
 protected:
  int Run(const std::vector<std::string>& arguments,
          const Variables& variables = {}) {
    std::istringstream in("one\ntwo\n");
    std::ostringstream out;
    std::ostringstream err;
    Environment environment{in, out, err};
    environment.variables = variables;
    const int code = RunEncoderctl(arguments, environment);
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  const TempFolder folder_;
  std::string out_;
  std::string err_;
};

TEST_F(EncoderctlAccessTest, ReachesASecuredServerWithEveryCommand) {
  const FakeEncoderService service(0, MutualWithToken());
  folder_.Write("token", "right-token\n");
  const std::vector<std::vector<std::string>> commands = {
      {"embed"},
      {"embed", absl::StrCat("--output=", folder_.Path("out.npy"))},
      {"encode"},
      {"tokenize"},
      {"similarity", "one", "two"},
      {"models"},
      {"inspect"},
      {"bench", "one", "--count=3"},
      {"bench", "one", "--count=3", "--stream"},
      {"health"}};
  const Variables variables = {
      {"ENCODERD_TARGET", service.target()},
      {"ENCODERD_CA_FILE", Path("ca.pem")},
      {"ENCODERD_CERTIFICATE_FILE", Path("client.pem")},
      {"ENCODERD_KEY_FILE", Path("client.key")},
      {"ENCODERD_TOKEN", "right-token"}};
  for (std::vector<std::string> command : commands) {
    EXPECT_EQ(Run(command, variables), kExitOk) << command[0] << ": " << err_;
    for (const std::string& flag :
         {absl::StrCat("--target=", service.target()),
          absl::StrCat("--ca_file=", Path("ca.pem")),
          absl::StrCat("--certificate_file=", Path("client.pem")),
          absl::StrCat("--key_file=", Path("client.key")),
          absl::StrCat("--token_file=", folder_.Path("token"))}) {
      command.push_back(flag);
    }
    EXPECT_EQ(Run(command), kExitOk) << command[0] << ": " << err_;
  }
}

TEST_F(EncoderctlAccessTest, SaysWhatIsWrongWithACertificate) {
  FakeDoor door = MutualWithToken();
  door.asks_certificate = false;
  const FakeEncoderService service(0, door);
  EXPECT_EQ(Run({"health", "--target", service.target(), "--ca_file",
                 Path("foreign_ca.pem")}),
            kExitFailed);
  EXPECT_THAT(err_, StartsWith("encoderctl health: UNAVAILABLE: the "
                               "certificate of "));
  EXPECT_THAT(err_, HasSubstr(" is not trusted; set --ca_file to "));
  EXPECT_EQ(Run({"health", "--target", service.target(), "--ca_file",
                 Path("ca.pem"), "--server_name=encoderd.example"}),
            kExitFailed);
  EXPECT_THAT(err_, HasSubstr(" is for another name; "));
  EXPECT_EQ(Run({"health", "--target", service.target()}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("set --tls or --ca_file; if it has "));
}

TEST_F(EncoderctlAccessTest, SaysThatATokenIsMissingOrWrong) {
  FakeDoor door;
  door.token = "right-token";
  const FakeEncoderService service(0, door);
  const std::string target = absl::StrCat("--target=", service.target());
  EXPECT_EQ(Run({"models", target}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("UNAUTHENTICATED (BEARER_TOKEN_MISSING)"));
  EXPECT_EQ(Run({"models", target}, {{"ENCODERD_TOKEN", "wrong-token"}}),
            kExitFailed);
  EXPECT_THAT(err_, HasSubstr("UNAUTHENTICATED (BEARER_TOKEN_UNKNOWN)"));
  EXPECT_THAT(err_, Not(HasSubstr("wrong-token")));
}

TEST_F(EncoderctlAccessTest, RefusesWhatCannotWorkAsAWrongCommandLine) {
  EXPECT_EQ(Run({"models", "--target=encoderd.example:8400"},
                {{"ENCODERD_TOKEN", "secret"}}),
            kExitUsage);
  EXPECT_THAT(err_, StartsWith("encoderctl models: the token would be sent "
                               "unencrypted to encoderd.example:8400; use TLS "
                               "(--tls or --ca_file)\n"));
  EXPECT_EQ(Run({"bench", "one", "--tls=no", "--ca_file=ca.pem"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--ca_file \"ca.pem\" is for TLS, but --tls is "
                              "false"));
  EXPECT_EQ(Run({"health", "--certificate_file=client.pem"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("needs --key_file"));
  const std::string npy = folder_.Path("out.npy");
  for (std::vector<std::string> command : std::vector<std::vector<std::string>>{
           {"embed"}, {"embed", "--output", npy}, {"encode"}, {"inspect"}}) {
    command.emplace_back("--ca_file=/no/such/ca.pem");
    EXPECT_EQ(Run(command), kExitUsage);
    EXPECT_EQ(err_, absl::StrCat("encoderctl ", command[0],
                                 ": --ca_file \"/no/such/ca.pem\" cannot be "
                                 "read: No such file or directory\n"
                                 "see encoderctl ",
                                 command[0], " --help\n"));
  }
  EXPECT_FALSE(std::filesystem::exists(npy));
}

TEST_F(EncoderctlAccessTest, ExplainsItsFlagsOnceForEveryCommand) {
  for (const Command& command : Commands()) {
    if (std::string(command.name) == "completion") continue;  // asks no server
    ASSERT_EQ(Run({command.name, "--help"}), kExitOk);
    EXPECT_THAT(out_, HasSubstr("for TLS and tokens (--tls, --token_file, "
                                "...): encoderctl help connection\n"));
  }
  ASSERT_EQ(Run({"help", "connection"}), kExitOk);
  for (const char* flag :
       {"--tls[=yes|no]", "--ca_file=FILE", "--certificate_file=FILE",
        "--key_file=FILE", "--server_name=NAME", "--token_file=FILE",
        "can see command"}) {
    EXPECT_THAT(out_, HasSubstr(flag));
  }
}

}  // namespace
}  // namespace encoderd::ctl
