#include "server/flag_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "absl/cleanup/cleanup.h"
#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/io/file_error.h"

namespace encoderd {
namespace {

constexpr char kSeeHelp[] = "`encoderd --help` lists all flags";
// A flag file may name another one.
constexpr int kMaxFlagFiles = 8;
constexpr size_t kMaxFlagFileBytes = 1 << 20;
constexpr size_t kLongestTyped = 64;  // longer names are not typos
constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";

absl::Status Bad(absl::string_view why) {
  return absl::InvalidArgumentError(why);
}

// Abseil's own, which are not in its registry.
bool IsHelpFlag(absl::string_view name) {
  for (const char* help : {"h", "help", "helpfull", "helpshort", "helppackage",
                           "helpon", "helpmatch"}) {
    if (name == help) return true;
  }
  return false;
}

bool IsAbseils(absl::string_view name) {
  return IsHelpFlag(name) || name == "version" || name == "only_check_args" ||
         name == "undefok" || name == "fromenv" || name == "tryfromenv";
}

// Flags for which an empty value says nothing. A variable that is not set, in a
// unit file for example, must not turn off mutual TLS or tokens.
bool NeedsValue(absl::string_view name) {
  for (const char* flag :
       {"model", "tls_certificate_file", "tls_key_file", "tls_client_ca_file",
        "bearer_token_file", "flagfile"}) {
    if (name == flag) return true;
  }
  return false;
}

// "name" and "value" of "--name=value"; has_value: there is a "=".
struct Parts {
  absl::string_view name;
  absl::string_view value;
  bool has_value = false;
};

Parts Split(absl::string_view argument) {
  if (!absl::ConsumePrefix(&argument, "--"))
    absl::ConsumePrefix(&argument, "-");
  const size_t equals = argument.find('=');
  if (equals == argument.npos) return {argument, "", false};
  return {argument.substr(0, equals), argument.substr(equals + 1), true};
}

// Insertions, deletions, replacements and swaps of neighbors from one to the
// other.
size_t Distance(absl::string_view from, absl::string_view to) {
  std::vector<std::vector<size_t>> edits(from.size() + 1,
                                         std::vector<size_t>(to.size() + 1));
  for (size_t i = 0; i <= from.size(); ++i) {
    for (size_t j = 0; j <= to.size(); ++j) {
      if (i == 0 || j == 0) {
        edits[i][j] = i + j;
        continue;
      }
      edits[i][j] =
          std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1,
                    edits[i - 1][j - 1] + (from[i - 1] != to[j - 1])});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] &&
          from[i - 2] == to[j - 1]) {
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
      }
    }
  }
  return edits.back().back();
}

// Whether each word of `typed` begins another word of `name`, in any order:
// "tls_cert_file" and "listen_http" do.
bool Abbreviates(absl::string_view typed, absl::string_view name) {
  std::vector<absl::string_view> words = absl::StrSplit(name, '_');
  for (const absl::string_view word :
       absl::StrSplit(typed, absl::ByAnyChar("_-"))) {
    const auto found = std::find_if(
        words.begin(), words.end(),
        [&](absl::string_view known) { return absl::StartsWith(known, word); });
    if (found == words.end() || word.empty()) return false;
    words.erase(found);
  }
  return true;
}

// Of the flags that `typed` abbreviates, or else of those within a few edits,
// the nearest. Empty: none.
std::string Nearest(absl::string_view typed) {
  std::string nearest;
  if (typed.size() > kLongestTyped) return nearest;
  bool abbreviated = false;
  size_t least = std::max<size_t>(typed.size() / 3, 1) + 1;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (!IsServerFlagFile(flag->Filename())) continue;
    const bool abbreviates = Abbreviates(typed, name);
    if (abbreviated && !abbreviates) continue;
    const size_t distance = Distance(typed, name);
    if (abbreviates == abbreviated && distance >= least) continue;
    abbreviated = abbreviates;
    least = distance;
    nearest = std::string(name);
  }
  return nearest;
}

absl::Status Unknown(absl::string_view name) {
  const std::string nearest = Nearest(name);
  return Bad(absl::StrCat(
      "no flag --", name,
      nearest.empty() ? "" : absl::StrCat("; did you mean --", nearest, "?"),
      "; ", kSeeHelp));
}

absl::Status CheckValue(absl::CommandLineFlag* flag, absl::string_view value) {
  if (flag->Name() == "model") return absl::OkStatus();  // any text
  std::string error;
  if (flag->ParseFrom(value, &error)) return absl::OkStatus();
  if (flag->IsOfType<bool>()) {
    error = "must be true or false";
  } else if (flag->IsOfType<int32_t>() || flag->IsOfType<int64_t>()) {
    const int64_t most = flag->IsOfType<int32_t>()
                             ? std::numeric_limits<int32_t>::max()
                             : std::numeric_limits<int64_t>::max();
    error = absl::StrCat("must be a whole number of at most ", most,
                         ", without unit or separators");
  } else if (flag->IsOfType<double>()) {
    error = "must be a number";
  }
  // What a flag's own parser says follows Abseil's words.
  absl::string_view why = error;
  absl::ConsumePrefix(
      &why, absl::StrCat("Illegal value '", value, "' specified for flag '",
                         flag->Name(), "'; "));
  return Bad(absl::StrCat("--", flag->Name(), "=", value, ": ", why));
}

using Arguments = std::vector<std::string>;

// files_left: how many flag files may still be read. Appends to *expanded.
absl::Status CheckAll(const Arguments& arguments, int files_left,
                      Arguments* expanded);

absl::Status CheckLine(absl::string_view line, int files_left,
                       Arguments* expanded) {
  if (absl::StrContains(line, '\0')) {
    return Bad("this line has a NUL byte: save the file as UTF-8");
  }
  if (line[0] != '-' || line == "--") {
    return Bad("this line is neither a flag (--NAME=VALUE) nor a comment (#)");
  }
  const Parts parts = Split(line);
  const size_t space = parts.name.find_first_of(" \t");
  if (space != parts.name.npos) {
    return Bad(absl::StrCat(
        "write --", parts.name.substr(0, space), "=",
        absl::StripAsciiWhitespace(line.substr(line.find_first_of(" \t"))),
        ", without a space"));
  }
  if (absl::StrContains(parts.value, " #") ||
      absl::StrContains(parts.value, "\t#")) {
    return Bad(absl::StrCat("--", parts.name,
                            ": a comment needs a separate line; here it "
                            "belongs to the value"));
  }
  if (!parts.value.empty() &&
      (parts.value[0] == '"' || parts.value[0] == '\'')) {
    return Bad(absl::StrCat("--", parts.name,
                            ": no shell reads this file, and quotes belong to "
                            "the value: leave them out"));
  }
  return CheckAll({std::string(line)}, files_left, expanded);
}

// Of any kind, as the shell's <(...) is a pipe; some never end.
absl::StatusOr<std::string> ReadFlagFile(const std::string& path) {
  const std::string name = absl::StrCat("--flagfile=", path);
  const auto unreadable = [&name](int error) {
    return FileError(
        error, absl::StrCat(name, ": cannot be read: ", std::strerror(error)),
        absl::StatusCode::kInvalidArgument);
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return unreadable(errno);
  const absl::Cleanup closes = [fd] { close(fd); };
  std::string content;
  char part[16 << 10];
  while (content.size() <= kMaxFlagFileBytes) {
    const ssize_t count = read(fd, part, sizeof(part));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return unreadable(errno);
    if (count == 0) return content;
    content.append(part, static_cast<size_t>(count));
  }
  return Bad(
      absl::StrCat(name, ": has more than ", kMaxFlagFileBytes, " bytes"));
}

absl::Status CheckFile(const std::string& path, int files_left,
                       Arguments* expanded) {
  if (files_left == 0) {
    return Bad(absl::StrCat("--flagfile=", path,
                            ": --flagfile lines are nested more than ",
                            kMaxFlagFiles, " deep"));
  }
  const absl::StatusOr<std::string> content = ReadFlagFile(path);
  if (!content.ok()) return content.status();
  if (absl::StartsWith(*content, kByteOrderMark)) {
    return Bad(absl::StrCat(path,
                            ":1: the file begins with a byte order "
                            "mark, which editors hide: save it as "
                            "UTF-8 without one"));
  }
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(*content, '\n')) {
    ++number;
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (text.empty() || text[0] == '#') continue;
    absl::Status status = CheckLine(text, files_left - 1, expanded);
    if (status.ok() && absl::ascii_isspace(line.back())) {
      status =
          Bad("a blank or carriage return at the end would belong to the "
              "value: remove it");
    }
    if (status.ok()) continue;
    return absl::Status(
        status.code(), absl::StrCat(path, ":", number, ": ", status.message()));
  }
  return absl::OkStatus();
}

absl::Status CheckFlag(const Parts& parts, int files_left,
                       Arguments* expanded) {
  if (parts.value.empty() && NeedsValue(parts.name)) {
    return Bad(absl::StrCat("--", parts.name,
                            " has an empty value, as from a variable that is "
                            "not set: set it, or leave the flag out"));
  }
  if (parts.name == "flagfile") {
    for (const absl::string_view path :
         absl::StrSplit(parts.value, ',', absl::SkipEmpty())) {
      const absl::Status status =
          CheckFile(std::string(path), files_left, expanded);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  absl::CommandLineFlag* const flag = absl::FindCommandLineFlag(parts.name);
  if (flag == nullptr) return Unknown(parts.name);
  expanded->push_back(absl::StrCat("--", parts.name, "=", parts.value));
  return CheckValue(flag, parts.value);
}

// --fromenv=NAME,NAME and --tryfromenv: flags whose values are those of the
// variables FLAGS_NAME.
absl::Status CheckVariables(const Parts& parts, int files_left,
                            Arguments* expanded) {
  for (const absl::string_view name :
       absl::StrSplit(parts.value, ',', absl::SkipEmpty())) {
    if (IsAbseils(name)) {
      return Bad(absl::StrCat("--", parts.name, "=", name,
                              ": expected the server's flags; ", kSeeHelp));
    }
    if (!NeedsValue(name) && absl::FindCommandLineFlag(name) == nullptr) {
      return Unknown(name);
    }
    const std::string variable = absl::StrCat("FLAGS_", name);
    const char* const value = std::getenv(variable.c_str());
    if (value == nullptr && parts.name == "tryfromenv" && !NeedsValue(name)) {
      continue;
    }
    if (value == nullptr) {
      return Bad(absl::StrCat("--", parts.name, "=", name, ": the variable ",
                              variable,
                              " is not set: set it, or leave the flag out"));
    }
    const absl::Status status =
        CheckFlag({name, value, true}, files_left, expanded);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Of a flag without "=": whether its value is the next argument.
bool TakesNext(absl::string_view name) {
  const absl::CommandLineFlag* const flag = absl::FindCommandLineFlag(name);
  return flag != nullptr && !flag->IsOfType<bool>();
}

// --insecure and --noinsecure.
bool IsSwitch(absl::string_view name) {
  const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
  if (flag == nullptr && absl::ConsumePrefix(&name, "no")) {
    flag = absl::FindCommandLineFlag(name);
  }
  return flag != nullptr && flag->IsOfType<bool>();
}

absl::Status CheckAll(const Arguments& arguments, int files_left,
                      Arguments* expanded) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const absl::string_view argument = arguments[i];
    if (argument.size() < 2 || argument[0] != '-' || argument == "--") {
      const size_t stray = argument == "--" ? i + 1 : i;
      if (stray == arguments.size()) return absl::OkStatus();
      return Bad(absl::StrCat("unexpected argument '", arguments[stray],
                              "'; every setting is a --flag: to serve a model "
                              "folder, write --model=",
                              arguments[stray], "; ", kSeeHelp));
    }
    Parts parts = Split(argument);
    if (parts.has_value &&
        (parts.name == "fromenv" || parts.name == "tryfromenv")) {
      const absl::Status status = CheckVariables(parts, files_left, expanded);
      if (!status.ok()) return status;
      continue;
    }
    if (IsAbseils(parts.name) || (!parts.has_value && IsSwitch(parts.name))) {
      expanded->push_back(arguments[i]);
      continue;
    }
    if (!parts.has_value && TakesNext(parts.name)) {
      if (++i == arguments.size()) {
        return Bad(absl::StrCat("--", parts.name, " has no value: write --",
                                parts.name, "=VALUE"));
      }
      parts.value = arguments[i];
    }
    const absl::Status status = CheckFlag(parts, files_left, expanded);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckArguments(
    const std::vector<std::string>& arguments) {
  Arguments expanded;
  const absl::Status status = CheckAll(arguments, kMaxFlagFiles, &expanded);
  if (!status.ok()) return status;
  return expanded;
}

bool IsServerFlagFile(absl::string_view file) {
  return absl::EndsWith(file, "server/flags.cc");
}

std::vector<std::string> HelpFlags(const std::vector<std::string>& arguments) {
  std::vector<std::string> flags;
  for (const std::string& argument : arguments) {
    if (argument.size() > 1 && argument[0] == '-' &&
        IsHelpFlag(Split(argument).name)) {
      flags.push_back(argument);
    }
  }
  return flags;
}

}  // namespace encoderd
