// One run of a command: its flags, its settings, its way of reporting. Not
// thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_INVOCATION_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_INVOCATION_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "client/cpp/encoderctl/access_flags.h"
#include "client/cpp/encoderctl/commands.h"
#include "client/cpp/encoderctl/flags.h"
#include "client/cpp/encoderctl/input_kind.h"
#include "client/cpp/encoderctl/output_format.h"
#include "client/cpp/encoderctl/progress.h"

namespace encoderd::ctl {

// What the flags that several commands share set.
struct Settings {
  std::string target = client::kDefaultTarget;
  absl::Duration timeout;
  std::string model;
  int batch_size = client::ClientOptions().texts_per_call;
  int in_flight = client::ClientOptions().calls_in_flight;
  v1::Truncate truncate = v1::TRUNCATE_NONE;
  v1::OnError on_error = v1::ON_ERROR_FAIL_REQUEST;
  std::string input = "-";
  InputFormat input_format = InputFormat::kAuto;
  std::string field = "text";  // of a JSON object; a CSV's column
  std::string output = "-";
  OutputFormat asked_format = OutputFormat::kAuto;
  // What asked_format comes to, once parsed; never kAuto.
  OutputFormat format = OutputFormat::kText;
  ShowProgress progress = ShowProgress::kAuto;
};

inline constexpr char kTimeoutHelp[] =
    "time limit of one call, including its retries and the wait for a server "
    "that is loading";
// Of embed, encode and similarity, which also wait for a server that goes away.
inline constexpr char kAwaitingTimeoutHelp[] =
    "time limit of one call, including its retries and the wait for a server "
    "that is loading or restarting";

class Invocation {
 public:
  // Every command knows where the server is and how to get in (--target,
  // --timeout, AccessFlags).
  Invocation(const Command& command, Environment& environment,
             absl::Duration timeout = client::ClientOptions().timeout,
             std::string timeout_help = kTimeoutHelp);

  // A command that asks no server has none of these flags.
  struct NoServer {};
  Invocation(const Command& command, Environment& environment, NoServer);

  // Flags of commands that work on a list of texts: --model, --batch_size,
  // --in_flight, those of the input, --progress.
  void AddListFlags();
  // --input, of which `help` says what is read from it, and how it is read.
  void AddInputFlags(std::string help);
  // Some of them, for commands that need no more.
  void AddModelFlag();
  void AddProgressFlag();
  // `formats`: text first, jsonl, npy. `one_value`: see ChooseFormat.
  void AddOutputFlags(std::vector<OutputFormat> formats,
                      bool one_value = false);
  void AddTruncateFlag();
  // `in_npy`: what becomes of a bad text there, "its row is 0".
  void AddOnErrorFlag(absl::string_view in_npy);

  // Reads the command line. An exit code if the run is over with that (help
  // was asked for, or it is wrong); nullopt: continue.
  std::optional<int> Parse(const std::vector<std::string>& arguments);

  // The command, its flags but those of AccessFlags, and examples.
  std::string Help() const;
  // Whether `path`, or standard output for "-", is the file that --input names,
  // by whatever name, or that the shell opened as standard input, where texts
  // are read from there.
  bool WouldOverwriteInput(const std::string& path) const;
  // What --batch_size and --in_flight say of the calls of a list.
  client::ClientOptions ListOptions() const;
  // A client for the target, as the flags say, with ListOptions. The others set
  // what `options` leave open (--timeout, or `timeout`, and those of access).
  absl::StatusOr<std::unique_ptr<client::Client>> Connect() const;
  absl::StatusOr<std::unique_ptr<client::Client>> Connect(
      client::ClientOptions options) const;
  absl::StatusOr<std::unique_ptr<client::Client>> Connect(
      client::ClientOptions options, absl::Duration timeout) const;

  // Says, on standard error, what is no error: the pieces, end to end.
  template <typename... Pieces>
  void Note(const Pieces&... pieces) const {
    Say(absl::StrCat(pieces...));
  }

  // Print the error and return the exit code. Usage: the command line is wrong.
  // Refuse: so it is if `status` is INVALID_ARGUMENT, else what it names (a
  // file) cannot be had. Fail: the server refused, with what to do about it; a
  // broken pipe is passed over in silence.
  int Usage(absl::string_view message) const;
  int Refuse(const absl::Status& status) const;
  int Fail(const absl::Status& failed, absl::string_view where = "") const;
  // Says that a signal ended the work after this many texts; see StopOnSignal.
  int Stopped(int64_t texts, absl::string_view remedy = "") const;

  const Command& command;
  Environment& environment;
  Flags flags;
  Settings settings;
  AccessFlags access;
  std::vector<std::string> positional;

 private:
  // A line on standard error, behind the command's name.
  void Say(absl::string_view message) const;

  bool has_server_ = true;
  // Of a call whose time was over: the error of the connection, if there is
  // none. Connects once more to know.
  absl::Status ConnectionError() const;

  std::vector<OutputFormat> formats_;  // of the output; empty: it has no flags
  bool one_value_ = false;
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_INVOCATION_H_
