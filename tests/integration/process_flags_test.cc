// The server as a process: what its command line and its flag files set, and
// what is wrong with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/exit_codes.h"
#include "tests/integration/served.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

using ::testing::HasSubstr;

TEST(ProcessFlagsTest, BadSettingsAreNamedWithValueAndLimit) {
  const struct {
    std::string flag;
    std::string message;
  } kCases[] = {
      {"--max_len=513", "513"},
      {"--max_queue_tokens=0", "must be 1 to"},
      {"--listen=nowhere", "must be host:port"},
      {"--device=tpu", "must be one of auto, cpu"},
      {"--drain_timeout=2h", "must be 0 to 1h"},
      {"--max_queue_time=nan",
       "\"--max_queue_time=nan: it takes a time with its unit, such as 500ms, "
       "5s or 2m\"\n"},
      {"--max_queue_time=inf",
       "--max_queue_time=inf: must be 0 (no limit) or 1ms to 24h"},
      {"--drain_delay=-inf", "--drain_delay=-inf: must be 0 to 1h"},
      {"--trace_ratio=nan", "--trace_ratio=nan: must be 0 to 1"},
      {"--max_len=nan", "--max_len=nan: must be a whole number"},
      {"--model=fake=load_ms:0", "another --model already has the name 'fake'"},
      {"--model=other=nonsense:1", "model 'other': "},
      {"--drain_delay=5",
       "--drain_delay=5: it takes a time with its unit, such as 500ms, 5s or "
       "2m; did you mean 5s?"},
      {"--max_conections=5",
       "no flag --max_conections; did you mean --max_connections?; `encoderd "
       "--help` lists all flags"},
      {"--tls_cert_file=x", "did you mean --tls_certificate_file?"},
      {"--modle=x", "did you mean --model?"},
      {"--listen_http=x", "did you mean --http_listen?"},
      {"--max-queue-tokens=1", "did you mean --max_queue_tokens?"},
      {"--zzzzzzz=red", "no flag --zzzzzzz; `encoderd --help`"},
      {"--max_connections=1k",
       "--max_connections=1k: must be a whole number of at most 2147483647, "
       "without unit"},
      {"--threads=3000000000", "must be a whole number of at most 2147483647"},
      {"--insecure=maybe", "--insecure=maybe: must be true or false"},
      {"--tls_client_ca_file=",
       "--tls_client_ca_file has an empty value, as from a variable that is "
       "not set: set it, or leave the flag out"},
      {"--tls_certificate_file=", "--tls_certificate_file has an empty value"},
      {"--tls_key_file=", "--tls_key_file has an empty value"},
      {"--bearer_token_file=", "--bearer_token_file has an empty value"},
      {"--bearer_token_file ", "--bearer_token_file has an empty value"},
      {"--model=", "--model has an empty value"},
      {"--flagfile=", "--flagfile has an empty value"},
      {"--fromenv=insecure,bearer_token_file",
       "--fromenv=insecure: the variable FLAGS_insecure is not set: set it, or "
       "leave the flag out"},
      {"--tryfromenv=insecure,tls_key_file",
       "--tryfromenv=tls_key_file: the variable FLAGS_tls_key_file is not set"},
      {"--fromenv=thread", "no flag --thread; did you mean --threads?"},
      {"--tryfromenv=thread", "no flag --thread; did you mean --threads?"},
      {"--tryfromenv=max_len", "--max_len=abc: must be a whole number"},
      {"--trace_ratio=0.1", "--trace_ratio=0.1: needs --otlp_endpoint"},
      {"--threads", "--threads has no value: write --threads=VALUE"},
      {"--http_listen=127.0.0.1:8400 --listen=127.0.0.1:8400",
       "--http_listen=127.0.0.1:8400: --listen=127.0.0.1:8400 has the same "
       "port"},
      {"stray",
       "unexpected argument 'stray'; every setting is a --flag: to serve a "
       "model folder, write --model=stray"},
  };
  for (const auto& test : kCases) {
    std::vector<std::string> more;
    size_t space = test.flag.find(' ');
    more.push_back(test.flag.substr(0, space));
    if (space != std::string::npos) more.push_back(test.flag.substr(space + 1));
    setenv("FLAGS_max_len", "abc", 1);  // for the flags that it is named for
    Process process(Arguments("positions:512", more));
    unsetenv("FLAGS_max_len");
    EXPECT_EQ(process.Wait(), kExitStartFailed) << test.flag;
    EXPECT_THAT(process.log(), HasSubstr(test.message)) << test.flag;
    EXPECT_THAT(process.log(), HasSubstr("level=error event=start_failed "))
        << test.flag;
  }
}

TEST(ProcessFlagsTest, ALineOfAFlagfileIsNamedWithWhatToWriteInstead) {
  const TempFolder folder;
  const std::string path = folder.Path("flags");
  const std::pair<std::string, std::string> kCases[] = {
      {"--listen=\"127.0.0.1:0\"", ":2: --listen: no shell reads this file"},
      {"--threads=1  # one", ":2: --threads: a comment needs a separate line"},
      {"--model /srv/model", ":2: write --model=/srv/model, without a space"},
      {"threads=1", ":2: this line is neither a flag (--NAME=VALUE) nor"},
      {"--", ":2: this line is neither a flag (--NAME=VALUE) nor"},
      {std::string("--listen=a\0b", 12), ":2: this line has a NUL byte"},
      {"--threads=1 ", ":2: a blank or carriage return at the end"},
      {"--threads=1\r", ":2: a blank or carriage return at the end"},
      {"--bearer_token_file=", ":2: --bearer_token_file has an empty value"},
      {"--thread=1", ":2: no flag --thread; did you mean --threads?"},
      {"--flagfile=/none", ":2: --flagfile=/none: cannot be read"},
      {"--flagfile=/", ":2: --flagfile=/: cannot be read: Is a directory"},
      {"--flagfile=" + path, "--flagfile lines are nested more than 8 deep"},
  };
  const auto fails = [&](const std::string& text, const std::string& message) {
    folder.Write("flags", text);
    Process process(
        Arguments("positions:512", {absl::StrCat("--flagfile=", path)}));
    EXPECT_EQ(process.Wait(), kExitStartFailed) << text;
    EXPECT_THAT(process.log(), HasSubstr(message)) << text;
  };
  for (const auto& [line, message] : kCases) {
    fails("# ours\n" + line + "\n", message);
  }
  fails("\xEF\xBB\xBF--threads=1\n",
        ":1: the file begins with a byte order mark");
  fails(std::string(1 << 20, '#') + "\n",
        absl::StrCat("--flagfile=", path, ": has more than 1048576 bytes"));
}

TEST(ProcessFlagsTest, AFlagfileOnADiskThatDoesNotAnswerMayBeReadLater) {
  // Nothing is at the address 0: reading from it there is EIO.
  const std::string flag = "--flagfile=/proc/self/mem";
  const TempFolder folder;
  folder.Write("flags", "# ours\n" + flag + "\n");
  const std::string nested = folder.Path("flags");
  const std::pair<std::string, std::string> kCases[] = {
      {flag, flag}, {"--flagfile=" + nested, nested + ":2: " + flag}};
  for (const auto& [argument, start] : kCases) {
    Process process(Arguments("load_ms:0", {argument}));
    EXPECT_EQ(process.Wait(), kExitTryAgain) << argument;
    EXPECT_THAT(
        process.log(),
        HasSubstr(absl::StrCat("event=start_failed code=UNAVAILABLE message=\"",
                               start, ": cannot be read: Input/output ")));
  }
}

TEST(ProcessFlagsTest, TheLogBeginsWithEverySetting) {
  Process process(Arguments(
      "positions:512",
      {"--model=b=positions:64", "--max_streams=7", "--trace_ratio=0.5",
       "--otlp_endpoint=a:1", "--drain_timeout=90s", "--insecure"}));
  const std::string line = process.WaitForLine("event=start ");
  for (const char* setting :
       {" model=\"fake=positions:512 b=positions:64\"", " max_streams=7 ",
        " max_connections=1024 ", " trace_ratio=0.5", " drain_timeout=1m30s ",
        " insecure=true ", " health_needs_token=false ",
        " tls_key_file=\"\""}) {
    EXPECT_THAT(line, HasSubstr(setting));
  }
}

TEST(ProcessFlagsTest, HelpThatWasAskedForIsNoFailure) {
  for (const char* flag : {"--help", "-h"}) {
    // No other flag matters then, such as a file that cannot be read.
    Process process({ENCODERD_FAKE_SERVER, "--flagfile=/none", flag});
    EXPECT_EQ(process.Wait(), kExitOk) << flag;
    EXPECT_EQ(process.log().find("start_failed"), std::string::npos) << flag;
  }
}

TEST(ProcessFlagsTest, AFlagfileIsReadLikeTheCommandLine) {
  const TempFolder folder;
  folder.Write("flags", "--max_len=100\n--threads=1\n");
  Served served("positions:512",
                {absl::StrCat("--flagfile=", folder.Path("flags"))});
  const std::string line = served.process.WaitForLine("event=serving");
  EXPECT_EQ(LogValue(line, "max_len"), "100") << served.process.log();
}

// As the shell's <(...) is.
TEST(ProcessFlagsTest, AFlagfileMayBeAPipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string lines = "--max_len=100\n--model=b=positions:512\n";
  ASSERT_EQ(write(ends[1], lines.data(), lines.size()),
            static_cast<ssize_t>(lines.size()));
  close(ends[1]);
  Served served("positions:512",
                {"--max_len=50", absl::StrCat("--flagfile=/dev/fd/", ends[0])});
  close(ends[0]);
  for (const char* name : {"fake", "b"}) {
    const std::string line = served.process.WaitForLine(
        absl::StrCat("event=serving model=", name, " "));
    EXPECT_EQ(LogValue(line, "max_len"), "100") << served.process.log();
  }
}

TEST(ProcessFlagsTest, ModelsAreCollectedFromCommandLineAndFlagfile) {
  const TempFolder folder;
  folder.Write("flags", "--model=b=max_len:20\n--model=c=max_len:30\n");
  Served served("max_len:10",
                {absl::StrCat("--flagfile=", folder.Path("flags")),
                 "--model=d=max_len:40"});
  for (const char* name : {"fake", "b", "c", "d"}) {
    EXPECT_NE(served.process.WaitForLine(
                  absl::StrCat("event=serving model=", name, " ")),
              "")
        << served.process.log();
  }
}

}  // namespace
}  // namespace encoderd
