#include "client/cpp/encoderctl/invocation.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/access.h"
#include "client/cpp/error.h"
#include "client/cpp/handshake.h"

namespace encoderd::ctl {

Invocation::Invocation(const Command& command, Environment& environment,
                       absl::Duration timeout)
    : command(command), environment(environment) {
  settings.timeout = timeout;
  const auto target = environment.variables.find("ENCODERD_TARGET");
  if (target != environment.variables.end() && !target->second.empty()) {
    settings.target = target->second;
  }
  flags.AddString("target", "HOST:PORT",
                  "where the server listens; the environment's "
                  "ENCODERD_TARGET sets the default",
                  &settings.target);
  flags.AddDuration("timeout", "time for one call, its retries included",
                    &settings.timeout);
}

void Invocation::AddModelFlag() {
  flags.AddString("model", "NAME", "empty: the server's default model",
                  &settings.model);
}

void Invocation::AddProgressFlag() {
  flags.AddChoice("progress",
                  "show texts, rate and time left on standard error; auto: "
                  "where it is a terminal",
                  {"auto", "always", "never"}, &settings.progress);
}

void Invocation::AddInputFlags(std::string help) {
  flags.AddString("input", "FILE", std::move(help), &settings.input);
  flags.AddChoice("input_format",
                  "of FILE and standard input; lines: a text a line; jsonl: a "
                  "JSON string or object a line, where blank lines at the end "
                  "are no texts, and one before others is a bad text; auto: "
                  "jsonl if FILE ends in .jsonl",
                  {"auto", "lines", "jsonl"}, &settings.input_format);
  flags.AddString("field", "NAME", "of a JSON object: its text",
                  &settings.field);
}

void Invocation::AddListFlags() {
  AddModelFlag();
  AddInputFlags(
      "read texts from here, one a line; -: standard input, unless texts are "
      "arguments");
  flags.AddInt("batch_size", "N", "texts of one call", 1, 65536,
               &settings.batch_size);
  flags.AddInt("in_flight", "N", "calls that wait for answers together", 1,
               1024, &settings.in_flight);
  AddProgressFlag();
}

void Invocation::AddOutputFlags(std::vector<std::string> formats) {
  std::string help = "how results are written";
  if (formats.front() == "auto") {
    help += "; auto: npy if --output ends in .npy, else text";
  }
  flags.AddChoice("format", std::move(help), std::move(formats),
                  &settings.format);
  flags.AddString("output", "FILE", "write results here; -: standard output",
                  &settings.output);
}

void Invocation::AddTruncateFlag() {
  flags.AddChoice("truncate",
                  "what to do with a text that is too long; none: refuse it; "
                  "start, end: cut there",
                  {"none", "start", "end"}, &settings.truncate);
}

void Invocation::AddOnErrorFlag() {
  flags.AddChoice("on_error",
                  "what a bad text does; fail: end the run; skip: cost its own "
                  "result only, and its line is named; in an .npy its vector "
                  "is 0, its token states are left out",
                  {"fail", "skip"}, &settings.on_error);
}

std::optional<int> Invocation::Parse(
    const std::vector<std::string>& arguments) {
  access.AddTo(&flags);  // last, as those of the command say more
  const auto ends = std::find(arguments.begin(), arguments.end(), "--");
  if (std::find(arguments.begin(), ends, "--help") != ends) {
    environment.out << "usage: encoderctl " << command.name << " "
                    << command.arguments << (*command.arguments ? " " : "")
                    << "[--FLAG=VALUE...]\n\n"
                    << command.summary << "\n"
                    << command.details << "\n\n"
                    << flags.Help();
    return kExitOk;
  }
  const absl::Status status = flags.Parse(arguments, &positional);
  if (!status.ok()) return Usage(status.message());
  if (WouldOverwriteInput(settings.output)) {
    return Usage("--output=" + settings.output + " is the file of --input");
  }
  return std::nullopt;
}

bool Invocation::WouldOverwriteInput(const std::string& path) const {
  std::error_code neither;  // one that is not there is no other
  return path != "-" && settings.input != "-" &&
         std::filesystem::equivalent(path, settings.input, neither);
}

absl::StatusOr<std::unique_ptr<client::Client>> Invocation::Connect() const {
  client::ClientOptions options;
  options.texts_per_call = settings.batch_size;
  options.texts_per_encode_call =
      std::min(options.texts_per_encode_call, settings.batch_size);
  options.calls_in_flight = settings.in_flight;
  return Connect(std::move(options));
}

absl::StatusOr<std::unique_ptr<client::Client>> Invocation::Connect(
    client::ClientOptions options) const {
  options.timeout = settings.timeout;
  const absl::Status filled = access.Fill(environment.variables, &options);
  if (!filled.ok()) return filled;
  if (client::ExposesToken(settings.target, options)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token would cross the network unencrypted to \"",
                     settings.target, "\": encrypt with --tls"));
  }
  return client::Client::Connect(settings.target, std::move(options));
}

v1::Truncate Invocation::truncate() const {
  if (settings.truncate == "start") return v1::TRUNCATE_START;
  if (settings.truncate == "end") return v1::TRUNCATE_END;
  return v1::TRUNCATE_NONE;
}

v1::OnError Invocation::on_error() const {
  return settings.on_error == "skip" ? v1::ON_ERROR_PER_INPUT
                                     : v1::ON_ERROR_FAIL_REQUEST;
}

int Invocation::Usage(absl::string_view message) const {
  environment.err << "encoderctl " << command.name << ": " << message
                  << "\nsee encoderctl " << command.name << " --help\n";
  return kExitUsage;
}

int Invocation::Fail(const absl::Status& status,
                     absl::string_view where) const {
  environment.err << "encoderctl " << command.name << ": ";
  if (!where.empty()) environment.err << where << ": ";
  environment.err << client::Describe(status) << "\n";
  // gRPC's own words of a server that is away name no way out.
  if (status.code() == absl::StatusCode::kUnavailable &&
      !client::IsHandshakeError(status) &&
      !client::GetErrorDetails(status).has_value()) {
    environment.err << "no answer from " << settings.target
                    << ": does a server run there? --target=HOST:PORT names "
                       "another\n";
  }
  return kExitFailed;
}

}  // namespace encoderd::ctl
