#include "client/cpp/encoderctl/flags.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace encoderd::ctl {
namespace {

absl::StatusOr<bool> ReadSwitch(absl::string_view text) {
  if (text == "yes" || text == "no") return text == "yes";
  return absl::InvalidArgumentError("yes or no");
}

}  // namespace

void Flags::AddString(std::string name, std::string value_name,
                      std::string help, std::string* value) {
  flags_.push_back({std::move(name), std::move(value_name), std::move(help),
                    *value, [value](absl::string_view text) {
                      *value = std::string(text);
                      return absl::OkStatus();
                    }});
}

void Flags::AddString(std::string name, std::string value_name,
                      std::string help, std::optional<std::string>* value) {
  flags_.push_back({std::move(name), std::move(value_name), std::move(help), "",
                    [value](absl::string_view text) {
                      *value = std::string(text);
                      return absl::OkStatus();
                    }});
}

void Flags::AddInt(std::string name, std::string value_name, std::string help,
                   int low, int high, int* value) {
  flags_.push_back({std::move(name), std::move(value_name), std::move(help),
                    absl::StrCat(*value),
                    [value, low, high](absl::string_view text) {
                      int parsed = 0;
                      if (!absl::SimpleAtoi(text, &parsed) || parsed < low ||
                          parsed > high) {
                        return absl::InvalidArgumentError(absl::StrCat(
                            "a whole number from ", low, " to ", high));
                      }
                      *value = parsed;
                      return absl::OkStatus();
                    }});
}

void Flags::AddDuration(std::string name, std::string help,
                        absl::Duration* value, bool or_none) {
  flags_.push_back({std::move(name), "TIME", std::move(help),
                    absl::FormatDuration(*value),
                    [value, or_none](absl::string_view text) {
                      absl::Duration parsed;
                      if (!absl::ParseDuration(text, &parsed) ||
                          parsed < absl::ZeroDuration() ||
                          (!or_none && parsed == absl::ZeroDuration())) {
                        return absl::InvalidArgumentError(absl::StrCat(
                            "a time ", or_none ? "" : "above 0 ",
                            "with its unit, such as 500ms, 30s or 2m"));
                      }
                      *value = parsed;
                      return absl::OkStatus();
                    }});
}

void Flags::AddSwitch(std::string name, std::string help, bool* value) {
  flags_.push_back({std::move(name), "yes|no", std::move(help),
                    *value ? "yes" : "no",
                    [value](absl::string_view text) {
                      const auto read = ReadSwitch(text);
                      if (read.ok()) *value = *read;
                      return read.status();
                    },
                    /*alone=*/true});
}

void Flags::AddSwitch(std::string name, std::string help,
                      std::optional<bool>* value) {
  flags_.push_back({std::move(name), "yes|no", std::move(help), "",
                    [value](absl::string_view text) {
                      const auto read = ReadSwitch(text);
                      if (read.ok()) *value = *read;
                      return read.status();
                    },
                    /*alone=*/true});
}

void Flags::AddChoice(std::string name, std::string help,
                      std::vector<std::string> choices, std::string* value) {
  const std::string value_name = absl::StrJoin(choices, "|");
  flags_.push_back({std::move(name), value_name, std::move(help), *value,
                    [value, value_name,
                     choices = std::move(choices)](absl::string_view text) {
                      if (std::find(choices.begin(), choices.end(),
                                    std::string(text)) == choices.end()) {
                        return absl::InvalidArgumentError(
                            absl::StrCat("one of ", value_name));
                      }
                      *value = std::string(text);
                      return absl::OkStatus();
                    }});
}

const Flags::Flag* Flags::Find(absl::string_view name) const {
  for (const Flag& flag : flags_) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

absl::Status Flags::Parse(absl::Span<const std::string> arguments,
                          std::vector<std::string>* positional) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view argument = arguments[i];
    if (argument == "--") {
      positional->insert(positional->end(), arguments.begin() + i + 1,
                         arguments.end());
      break;
    }
    if (!absl::ConsumePrefix(&argument, "--")) {
      positional->push_back(arguments[i]);
      continue;
    }
    const size_t equals = argument.find('=');
    const absl::string_view name = argument.substr(0, equals);
    const Flag* flag = Find(name);
    if (flag == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("unknown flag --", name));
    }
    absl::string_view value = "yes";
    if (equals != absl::string_view::npos) {
      value = argument.substr(equals + 1);
    } else if (!flag->alone) {
      if (i + 1 == arguments.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat("--", name, " needs a value: ", flag->value_name));
      }
      value = arguments[++i];
    }
    const absl::Status status = flag->set(value);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--", name, " is \"", value, "\"; it takes ", status.message()));
    }
  }
  return absl::OkStatus();
}

std::string Flags::Help() const {
  std::string help;
  for (const Flag& flag : flags_) {
    absl::StrAppend(&help, "  --", flag.name, flag.alone ? "[=" : "=",
                    flag.value_name, flag.alone ? "]" : "", "\n      ",
                    flag.help);
    if (!flag.default_text.empty()) {
      absl::StrAppend(&help, " (default ", flag.default_text, ")");
    }
    absl::StrAppend(&help, "\n");
  }
  return help;
}

}  // namespace encoderd::ctl
