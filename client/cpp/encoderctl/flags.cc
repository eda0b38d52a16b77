#include "client/cpp/encoderctl/flags.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "client/cpp/encoderctl/near_miss.h"
#include "client/cpp/encoderctl/wrap.h"

namespace encoderd::ctl {
namespace {

absl::StatusOr<bool> ReadSwitch(absl::string_view text) {
  if (text == "yes" || text == "true" || text == "1") return true;
  if (text == "no" || text == "false" || text == "0") return false;
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

void Flags::AddFile(std::string name, std::string help, std::string* value) {
  AddString(std::move(name), "FILE", std::move(help), value);
  flags_.back().once = true;
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

void Flags::AddNumber(std::string name, std::string value_name,
                      std::string help, double low, double high,
                      double* value) {
  flags_.push_back({std::move(name), std::move(value_name), std::move(help),
                    absl::StrCat(*value),
                    [value, low, high](absl::string_view text) {
                      double parsed = 0;
                      // Not a number is in no range.
                      if (!absl::SimpleAtod(text, &parsed) ||
                          !(parsed >= low && parsed <= high)) {
                        return absl::InvalidArgumentError(absl::StrFormat(
                            "a number from %.10g to %.10g", low, high));
                      }
                      *value = parsed;
                      return absl::OkStatus();
                    }});
}

void Flags::AddDuration(std::string name, std::string help,
                        absl::Duration* value, bool or_none) {
  flags_.push_back(
      {std::move(name), "TIME", std::move(help), absl::FormatDuration(*value),
       [value, or_none](absl::string_view text) {
         absl::Duration parsed;
         if (!absl::ParseDuration(text, &parsed) ||
             parsed < absl::ZeroDuration() ||
             (!or_none && parsed == absl::ZeroDuration())) {
           double seconds = 0;
           const bool bare = absl::SimpleAtod(text, &seconds) && seconds > 0;
           return absl::InvalidArgumentError(
               absl::StrCat("a time ", or_none ? "" : "above 0 ",
                            "with its unit, such as 500ms, 30s or 2m",
                            bare ? "; did you mean " : "", bare ? text : "",
                            bare ? "s?" : ""));
         }
         *value = parsed;
         return absl::OkStatus();
       }});
}

template <typename Value>
void Flags::AddSwitchTo(std::string name, std::string help,
                        std::string default_text, Value* value) {
  flags_.push_back({std::move(name),
                    "yes|no",
                    std::move(help),
                    std::move(default_text),
                    [value](absl::string_view text) {
                      const auto read = ReadSwitch(text);
                      if (read.ok()) *value = *read;
                      return read.status();
                    },
                    /*alone=*/true,
                    {"yes", "no"}});
}

void Flags::AddSwitch(std::string name, std::string help, bool* value) {
  AddSwitchTo(std::move(name), std::move(help), *value ? "yes" : "no", value);
}

void Flags::AddSwitch(std::string name, std::string help,
                      std::optional<bool>* value) {
  AddSwitchTo(std::move(name), std::move(help), "", value);
}

void Flags::AddWords(std::string name, std::string help,
                     std::vector<std::string> words, std::string default_word,
                     std::function<void(size_t)> choose) {
  const std::string value_name = absl::StrJoin(words, "|");
  std::vector<std::string> values = words;
  flags_.push_back(
      {std::move(name), value_name, std::move(help), std::move(default_word),
       [value_name, words = std::move(words),
        choose = std::move(choose)](absl::string_view text) {
         const auto word = std::find(words.begin(), words.end(), text);
         if (word == words.end()) {
           return absl::InvalidArgumentError(absl::StrCat(
               "one of ", value_name, DidYouMean(text, words, "")));
         }
         choose(static_cast<size_t>(word - words.begin()));
         return absl::OkStatus();
       },
       /*alone=*/false, std::move(values)});
}

const Flags::Flag* Flags::Find(absl::string_view name) const {
  // --batch-size is --batch_size.
  const std::string known = absl::StrReplaceAll(name, {{"-", "_"}});
  for (const Flag& flag : flags_) {
    if (flag.name == known) return &flag;
  }
  return nullptr;
}

int Flags::Given(absl::string_view name) const {
  const Flag* const flag = Find(name);
  return flag == nullptr ? 0 : flag->given;
}

std::vector<std::string> Flags::Names() const {
  std::vector<std::string> names;
  for (const Flag& flag : flags_) names.push_back(flag.name);
  names.push_back("help");
  return names;
}

absl::Status Flags::Unknown(absl::string_view argument) const {
  const bool one_dash = !absl::StartsWith(argument, "--");
  if (argument == "-") {
    return absl::InvalidArgumentError(
        absl::StrCat("\"-\" is neither a flag nor a text; ",
                     Has("input") ? "--input=- reads standard input, and " : "",
                     "a text that begins with a dash goes after --"));
  }
  const absl::string_view shown = argument.substr(0, argument.find('='));
  const std::string name =
      absl::StrReplaceAll(shown.substr(one_dash ? 1 : 2), {{"-", "_"}});
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown flag ", shown, DidYouMean(name, Names(), "--"),
      one_dash ? " (a text that begins with a dash goes after --)" : ""));
}

absl::Status Flags::Parse(absl::Span<const std::string> arguments,
                          std::vector<std::string>* positional) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view argument = arguments[i];
    if (argument == "--") {
      positional->insert(positional->end(), arguments.begin() + i + 1,
                         arguments.end());
      break;
    }
    if (!absl::StartsWith(argument, "-")) {
      positional->push_back(arguments[i]);
      continue;
    }
    if (!absl::ConsumePrefix(&argument, "--")) return Unknown(arguments[i]);
    const size_t equals = argument.find('=');
    const Flag* const found = Find(argument.substr(0, equals));
    if (found == nullptr) return Unknown(arguments[i]);
    Flag* const flag = &flags_[found - flags_.data()];
    ++flag->given;
    const bool last = i + 1 == arguments.size();
    absl::string_view value = "yes";
    if (equals != absl::string_view::npos) {
      value = argument.substr(equals + 1);
    } else if (!flag->alone) {
      // "--output --format=npy" has forgotten a value.
      if (last || absl::StartsWith(arguments[i + 1], "--")) {
        return absl::InvalidArgumentError(
            absl::StrCat("--", flag->name, " needs a value: --", flag->name,
                         "=", flag->value_name));
      }
      value = arguments[++i];
    } else if (!last && ReadSwitch(arguments[i + 1]).ok()) {
      // "--tls no" would turn it on and take "no" for a text.
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag->name, " ", arguments[i + 1], ": write --",
                       flag->name, "=", arguments[i + 1], "; to pass \"",
                       arguments[i + 1], "\" as a text, put it after --"));
    }
    const absl::Status status = flag->set(value);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag->name, " is \"",
                                                     value, "\"; it takes ",
                                                     status.message()));
    }
  }
  for (const Flag& flag : flags_) {
    if (!flag.once || flag.given < 2) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--", flag.name, " is given ", flag.given, " times; give it once"));
  }
  return absl::OkStatus();
}

std::string Flags::Help() const {
  std::string help;
  for (const Flag& flag : flags_) {
    absl::StrAppend(
        &help, "  --", flag.name, flag.alone ? "[=" : "=", flag.value_name,
        flag.alone ? "]" : "", "\n",
        Wrap(flag.default_text.empty() ? flag.help
                                       : absl::StrCat(flag.help, " (default ",
                                                      flag.default_text, ")"),
             6));
  }
  return help;
}

std::string Flags::Candidates() const {
  std::string lines;
  for (const Flag& flag : flags_) {
    absl::StrAppend(&lines, "--", flag.name);
    for (const std::string& value : flag.values) {
      absl::StrAppend(&lines, " ", value);
    }
    absl::StrAppend(&lines, "\n");
  }
  return lines;
}

}  // namespace encoderd::ctl
