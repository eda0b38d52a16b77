#include "client/cpp/encoderctl/invocation.h"

#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cpp/access.h"
#include "client/cpp/encoderctl/number.h"
#include "client/cpp/encoderctl/output_file.h"
#include "client/cpp/encoderctl/remedy.h"
#include "client/cpp/encoderctl/signals.h"
#include "client/cpp/encoderctl/wrap.h"
#include "client/cpp/error.h"
#include "client/cpp/target.h"

namespace encoderd::ctl {
namespace {

constexpr absl::Duration kMostForConnectionError = absl::Seconds(2);

bool IsRegular(int descriptor, struct stat* info) {
  return descriptor >= 0 && fstat(descriptor, info) == 0 &&
         S_ISREG(info->st_mode);
}

// The choices of a flag that takes these.
template <typename Format>
std::vector<std::pair<std::string, Format>> InWords(
    const std::vector<Format>& formats) {
  std::vector<std::pair<std::string, Format>> choices;
  for (const Format format : formats) {
    choices.emplace_back(WordOf(format), format);
  }
  return choices;
}

}  // namespace

Invocation::Invocation(const Command& command, Environment& environment,
                       absl::Duration timeout, std::string timeout_help)
    : command(command), environment(environment) {
  settings.timeout = timeout;
  const auto target = environment.variables.find("ENCODERD_TARGET");
  if (target != environment.variables.end() && !target->second.empty()) {
    settings.target = target->second;
  }
  flags.AddString("target", "HOST:PORT",
                  "the server's address; the environment variable "
                  "ENCODERD_TARGET sets the default",
                  &settings.target);
  flags.AddDuration("timeout", std::move(timeout_help), &settings.timeout);
}

Invocation::Invocation(const Command& command, Environment& environment,
                       NoServer)
    : command(command), environment(environment), has_server_(false) {}

void Invocation::AddModelFlag() {
  flags.AddString("model", "NAME", "name of the model; empty: the default",
                  &settings.model);
}

void Invocation::AddProgressFlag() {
  flags.AddChoice("progress",
                  "show texts done, rate and time left on standard error, "
                  "unless results go to the same terminal; auto: only if it is "
                  "a terminal",
                  {{"auto", ShowProgress::kAuto},
                   {"always", ShowProgress::kAlways},
                   {"never", ShowProgress::kNever}},
                  &settings.progress);
}

void Invocation::AddInputFlags(std::string help) {
  flags.AddFile("input", std::move(help), &settings.input);
  flags.AddChoice("input_format",
                  "format of FILE or standard input; lines: one text per "
                  "line; jsonl: one JSON string or object per line (blank "
                  "lines are ignored at the end, and are bad texts "
                  "elsewhere); csv: a header, then one text per row; tsv: the "
                  "same with tabs instead of commas; json: an array of strings "
                  "or objects; auto: by the extension of FILE (.jsonl, "
                  ".ndjson, .csv, .tsv or .json), else lines",
                  InWords<InputFormat>({InputFormat::kAuto, InputFormat::kLines,
                                        InputFormat::kJsonl, InputFormat::kCsv,
                                        InputFormat::kTsv, InputFormat::kJson}),
                  &settings.input_format);
  flags.AddString("field", "NAME",
                  "the field of a JSON object, or the column of a CSV, that "
                  "holds the text",
                  &settings.field);
}

void Invocation::AddListFlags() {
  AddModelFlag();
  AddInputFlags(
      "file of texts: lines, .jsonl, .csv, .tsv or .json; -: standard input, "
      "unless the texts are arguments");
  flags.AddInt("batch_size", "N",
               "texts per call, 1 to 65536; capped at the server's limit", 1,
               65536, &settings.batch_size);
  flags.AddInt("in_flight", "N",
               absl::StrCat("at most this many calls in flight, 1 to 1024; of "
                            "embed into an .npy, 1 to ",
                            client::kMostCallsInFlight),
               1, 1024, &settings.in_flight);
  AddProgressFlag();
}

void Invocation::AddOutputFlags(std::vector<OutputFormat> formats,
                                bool one_value) {
  formats_ = formats;
  one_value_ = one_value;
  const bool npy = formats.back() == OutputFormat::kNpy;
  formats.insert(formats.begin(), OutputFormat::kAuto);
  flags.AddChoice(
      "format",
      absl::StrCat("format of the results; auto: ",
                   npy ? "npy if --output ends in .npy, " : "", "jsonl if ",
                   npy ? "" : "--output ends ", "in .jsonl",
                   one_value ? ", .json" : "", " or .ndjson, else text"),
      InWords(formats), &settings.asked_format);
  flags.AddFile("output", "write results here; -: standard output",
                &settings.output);
}

void Invocation::AddTruncateFlag() {
  flags.AddChoice("truncate",
                  "what to do with a text that is too long; none: reject it; "
                  "start, end: cut it at that end",
                  {{"none", v1::TRUNCATE_NONE},
                   {"start", v1::TRUNCATE_START},
                   {"end", v1::TRUNCATE_END}},
                  &settings.truncate);
}

void Invocation::AddOnErrorFlag(absl::string_view in_npy) {
  flags.AddChoice(
      "on_error",
      absl::StrCat("what to do about a bad text; fail: end the run; "
                   "skip: report its line and continue without its "
                   "result; text output has an empty line instead, "
                   "which numpy.loadtxt drops; jsonl has the "
                   "error; in an .npy ",
                   in_npy),
      {{"fail", v1::ON_ERROR_FAIL_REQUEST}, {"skip", v1::ON_ERROR_PER_INPUT}},
      &settings.on_error);
}

std::string Invocation::Help() const {
  std::string help = absl::StrCat(
      "usage: encoderctl ", command.name, *command.arguments ? " " : "",
      command.arguments, has_server_ ? " [--FLAG=VALUE...]\n\n" : "\n\n",
      Wrap(command.summary, 0), Wrap(command.details, 0), "\nexamples:\n");
  for (const absl::string_view line : absl::StrSplit(command.examples, '\n')) {
    absl::StrAppend(&help, "  ", line, "\n");
  }
  const std::string described = flags.Help();
  if (described.empty()) return help;
  return absl::StrCat(help, "\nflags, as --FLAG=VALUE or --FLAG VALUE:\n",
                      described,
                      "\nfor TLS and tokens (--tls, --token_file, ...): "
                      "encoderctl help connection\n");
}

std::optional<int> Invocation::Parse(
    const std::vector<std::string>& arguments) {
  const auto ends = std::find(arguments.begin(), arguments.end(), "--");
  const auto asks_for_help = [](const std::string& argument) {
    return argument == "-h" || argument == "--help" ||
           absl::StartsWith(argument, "--help=");
  };
  if (std::any_of(arguments.begin(), ends, asks_for_help)) {
    environment.out << Help();
    return kExitOk;
  }
  if (has_server_) access.AddTo(&flags);
  if (arguments == Arguments{kListCandidates}) {
    environment.out << flags.Candidates();
    return kExitOk;
  }
  const absl::Status status = flags.Parse(arguments, &positional);
  if (!status.ok()) return Usage(status.message());
  if (flags.Given("input") > 0 && settings.input.empty()) {
    return Usage("--input is empty; name a file, or - for standard input");
  }
  if (settings.output.empty()) {
    return Usage("--output is empty; name a file, or - for standard output");
  }
  const auto target = client::CheckTarget(settings.target);
  if (!target.ok()) return Usage(target.status().message());
  settings.target = *target;
  if (WouldOverwriteInput(settings.output)) {
    const absl::string_view input =
        settings.input == "-" ? "standard input" : "--input";
    return Usage(settings.output == "-"
                     ? absl::StrCat("standard output is the file of ", input,
                                    "; redirect it to another")
                     : absl::StrCat("--output=", settings.output,
                                    " is the file of ", input,
                                    "; name another"));
  }
  if (formats_.empty()) return std::nullopt;
  const auto format = ChooseFormat(settings.output, settings.asked_format,
                                   formats_, one_value_);
  if (!format.ok()) return Usage(format.status().message());
  settings.format = *format;
  return std::nullopt;
}

bool Invocation::WouldOverwriteInput(const std::string& path) const {
  struct stat in = {};
  struct stat out = {};
  // The shell opened them: embed < FILE >> FILE.
  const bool writes = path == "-" ? IsRegular(environment.out_descriptor, &out)
                                  : stat(path.c_str(), &out) == 0;
  const bool reads = settings.input == "-"
                         ? positional.empty() && flags.Has("input") &&
                               IsRegular(environment.in_descriptor, &in)
                         : stat(settings.input.c_str(), &in) == 0;
  return writes && reads && in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}

client::ClientOptions Invocation::ListOptions() const {
  client::ClientOptions options;
  options.texts_per_call = settings.batch_size;
  options.texts_per_encode_call = settings.batch_size;
  options.calls_in_flight = settings.in_flight;
  return options;
}

absl::StatusOr<std::unique_ptr<client::Client>> Invocation::Connect() const {
  return Connect(ListOptions());
}

absl::StatusOr<std::unique_ptr<client::Client>> Invocation::Connect(
    client::ClientOptions options) const {
  return Connect(std::move(options), settings.timeout);
}

absl::StatusOr<std::unique_ptr<client::Client>> Invocation::Connect(
    client::ClientOptions options, absl::Duration timeout) const {
  options.timeout = timeout;
  options.stop = [] { return StopOnSignal::Signal() != 0; };
  const absl::Status filled = access.Fill(environment.variables, &options);
  if (!filled.ok()) return filled;
  if (client::ExposesToken(settings.target, options)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token would be sent unencrypted to ", settings.target,
                     "; use TLS (--tls or --ca_file)"));
  }
  auto client = client::Client::Connect(settings.target, std::move(options));
  if (client.ok()) return client;
  return absl::Status(client.status().code(),
                      InFlags(client.status().message()));
}

void Invocation::Say(absl::string_view message) const {
  environment.err << "encoderctl " << command.name << ": " << Printable(message)
                  << "\n";
}

int Invocation::Usage(absl::string_view message) const {
  Say(message);
  environment.err << "see encoderctl " << command.name << " --help\n";
  return kExitUsage;
}

int Invocation::Refuse(const absl::Status& status) const {
  if (absl::IsInvalidArgument(status)) return Usage(status.message());
  Say(status.message());
  return kExitFailed;
}

absl::Status Invocation::ConnectionError() const {
  const auto client = Connect(client::ClientOptions(), kMostForConnectionError);
  if (!client.ok()) return absl::OkStatus();  // it was there for the call
  absl::Status status = (*client)->Health().status();
  const bool of_connection = absl::IsUnavailable(status) &&
                             !client::GetErrorDetails(status).has_value();
  return of_connection ? status : absl::OkStatus();
}

int Invocation::Fail(const absl::Status& failed,
                     absl::string_view where) const {
  absl::Status status = failed;
  // The retries of a call may take longer than its time: then gRPC tells of
  // the time, and not of the connection that it never had.
  if (absl::IsDeadlineExceeded(failed) &&
      !client::GetErrorDetails(failed).has_value()) {
    const absl::Status connection = ConnectionError();
    if (!connection.ok()) status = connection;
  }
  if (IsBrokenPipe(status)) return kExitSignal + SIGPIPE;
  std::string words = DescribeInFlags(status, flags);
  if (!client::GetErrorDetails(status).has_value()) {
    // gRPC's own words of a deadline do not say whose.
    words = absl::IsDeadlineExceeded(status)
                ? absl::StrCat("DEADLINE_EXCEEDED: no response from ",
                               settings.target, " within ",
                               absl::FormatDuration(settings.timeout))
                : InFlags(words);
  }
  Say(absl::StrCat(where, where.empty() ? "" : ": ", words,
                   Remedy(status, flags)));
  return kExitFailed;
}

int Invocation::Stopped(int64_t texts, absl::string_view remedy) const {
  Note("stopped after ", Texts(texts), remedy);
  return kExitSignal + StopOnSignal::Signal();
}

}  // namespace encoderd::ctl
