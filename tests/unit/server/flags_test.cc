// The way of each flag's value into the settings.
#include "server/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "server/flag_check.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

using ::testing::ElementsAre;

using Field =
    std::variant<std::string ServerConfig::*, bool ServerConfig::*,
                 int32_t ServerConfig::*, int64_t ServerConfig::*,
                 double ServerConfig::*, absl::Duration ServerConfig::*>;

// As on the command line.
std::string ValueOf(const ServerConfig& config, const Field& field) {
  return std::visit(
      [&](auto member) -> std::string {
        const auto& value = config.*member;
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, bool>) {
          return value ? "true" : "false";
        } else if constexpr (std::is_same_v<Value, absl::Duration>) {
          return absl::FormatDuration(value);
        } else {
          return absl::StrCat(value);
        }
      },
      field);
}

struct Setting {
  std::string flag;
  std::string value;
  Field field;
};

// Every flag but --model, none with its default; values of one kind differ, so
// that a swap shows.
const std::vector<Setting>& Settings() {
  static const auto& settings = *new std::vector<Setting>{
      {"listen", "0.0.0.0:11", &ServerConfig::listen},
      {"http_listen", "0.0.0.0:12", &ServerConfig::http_listen},
      {"tls_certificate_file", "a.pem", &ServerConfig::tls_certificate_file},
      {"tls_key_file", "b.pem", &ServerConfig::tls_key_file},
      {"tls_client_ca_file", "c.pem", &ServerConfig::tls_client_ca_file},
      {"bearer_token_file", "tokens", &ServerConfig::bearer_token_file},
      {"health_needs_token", "true", &ServerConfig::health_needs_token},
      {"insecure", "true", &ServerConfig::insecure},
      {"device", "cpu:portable", &ServerConfig::device},
      {"dtype", "bf16", &ServerConfig::dtype},
      {"products", "int8", &ServerConfig::products},
      {"tuning_folder", "tuning", &ServerConfig::tuning_folder},
      {"max_len", "101", &ServerConfig::max_len},
      {"cuda_graphs", "false", &ServerConfig::cuda_graphs},
      {"threads", "102", &ServerConfig::threads},
      {"tokenizer_threads", "103", &ServerConfig::tokenizer_threads},
      {"max_batch_tokens", "104", &ServerConfig::max_batch_tokens},
      {"max_queue_tokens", "105", &ServerConfig::max_queue_tokens},
      {"max_queue_time", "1m6s", &ServerConfig::max_queue_time},
      {"max_inputs_per_request", "107", &ServerConfig::max_inputs_per_request},
      {"max_message_bytes", "65644", &ServerConfig::max_message_bytes},
      {"max_connection_memory_bytes", "268435565",
       &ServerConfig::max_connection_memory_bytes},
      {"max_connections", "120", &ServerConfig::max_connections},
      {"max_connections_per_address", "111",
       &ServerConfig::max_connections_per_address},
      {"max_connection_idle", "1m52s", &ServerConfig::max_connection_idle},
      {"max_connection_age", "1m53s", &ServerConfig::max_connection_age},
      {"max_streams_per_connection", "114",
       &ServerConfig::max_streams_per_connection},
      {"max_streams", "115", &ServerConfig::max_streams},
      {"max_unread_answer_bytes", "1048692",
       &ServerConfig::max_unread_answer_bytes},
      {"reflection", "true", &ServerConfig::reflection},
      {"otlp_endpoint", "localhost:4317", &ServerConfig::otlp_endpoint},
      {"trace_ratio", "0.25", &ServerConfig::trace_ratio},
      {"drain_delay", "1m58s", &ServerConfig::drain_delay},
      {"drain_timeout", "1m59s", &ServerConfig::drain_timeout},
  };
  return settings;
}

TEST(FlagsTest, EveryFlagSetsItsSetting) {
  std::vector<std::string> arguments = {"encoderd", "--model=first=/a",
                                        "--model=/b/second"};
  std::set<std::string> tested = {"model"};
  for (const Setting& setting : Settings()) {
    arguments.push_back(absl::StrCat("--", setting.flag, "=", setting.value));
    tested.insert(setting.flag);
    EXPECT_NE(ValueOf(ServerConfig(), setting.field), setting.value)
        << setting.flag << " is tested with its default";
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());

  // Once: it keeps the models of earlier command lines.
  const auto config =
      ConfigFromFlags(static_cast<int>(argv.size()), argv.data());

  ASSERT_THAT(config, IsOk());
  for (const Setting& setting : Settings()) {
    EXPECT_EQ(ValueOf(*config, setting.field), setting.value) << setting.flag;
  }
  ASSERT_EQ(config->models.size(), 2u);
  EXPECT_EQ(config->models[0].name, "first");
  EXPECT_EQ(config->models[0].folder, "/a");
  EXPECT_EQ(config->models[1].name, "second");
  EXPECT_EQ(config->models[1].folder, "/b/second");
  std::set<std::string> all;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (IsServerFlagFile(flag->Filename())) all.insert(std::string(name));
  }
  EXPECT_EQ(tested, all);
}

TEST(CheckArgumentsTest, FilesAndVariablesAreReplacedByTheirFlags) {
  const TempFolder folder;
  folder.Write("inner", "--threads=2\n");
  folder.Write("outer", absl::StrCat("# ours\n\n  --max_len=1\n--flagfile=",
                                     folder.Path("inner"), "\n--insecure"));
  setenv("FLAGS_max_streams", "5", 1);
  const auto arguments = CheckArguments(
      {"--threads", "1", absl::StrCat("--flagfile=", folder.Path("outer")),
       "--tryfromenv=max_streams,drain_delay", "--noinsecure", "--max_len=3"});
  unsetenv("FLAGS_max_streams");
  ASSERT_THAT(arguments, IsOk());
  EXPECT_THAT(
      *arguments,
      ElementsAre("--threads=1", "--max_len=1", "--threads=2", "--insecure",
                  "--max_streams=5", "--noinsecure", "--max_len=3"));
}

TEST(CheckArgumentsTest, AFlagfileMayHaveOneMebibyte) {
  const TempFolder folder;
  const std::string flag = absl::StrCat("--flagfile=", folder.Path("flags"));
  const std::string end = "\n--threads=1\n";
  const std::string content = std::string((1 << 20) - end.size(), '#') + end;
  folder.Write("flags", content);
  const auto arguments = CheckArguments({flag});
  ASSERT_THAT(arguments, IsOk());
  EXPECT_THAT(*arguments, ElementsAre("--threads=1"));
  folder.Write("flags", content + "\n");
  EXPECT_THAT(CheckArguments({flag}),
              IsError(absl::StatusCode::kInvalidArgument,
                      absl::StrCat(flag, ": has more than 1048576 bytes")));
}

TEST(CheckArgumentsTest, AVariableNamesNoOtherVariables) {
  for (const char* name : {"fromenv", "help", "version"}) {
    EXPECT_THAT(CheckArguments({absl::StrCat("--fromenv=", name)}),
                IsError(absl::StatusCode::kInvalidArgument,
                        absl::StrCat("--fromenv=", name,
                                     ": expected the server's flags; ")));
  }
}

TEST(HelpFlagsTest, OnlyThoseThatAskForHelpAreKept) {
  EXPECT_THAT(HelpFlags({"--max_len=3", "--helpmatch=net", "help", "-h",
                         "--flagfile=/dev/zero", "--helpfull"}),
              testing::ElementsAre("--helpmatch=net", "-h", "--helpfull"));
  EXPECT_THAT(HelpFlags({"--max_len=3", "help"}), testing::IsEmpty());
}

}  // namespace
}  // namespace encoderd
