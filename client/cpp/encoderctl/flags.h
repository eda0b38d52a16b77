// The flags of one encoderctl command: --name=value or --name value, each with
// help that shows its default and unit. Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_FLAGS_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_FLAGS_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace encoderd::ctl {

class Flags {
 public:
  // Each takes where the value goes; its initial value is the default, and is
  // shown as such. `value_name` is what --help calls the value.
  void AddString(std::string name, std::string value_name, std::string help,
                 std::string* value);
  // Without a default: stays unset where the flag is not given.
  void AddString(std::string name, std::string value_name, std::string help,
                 std::optional<std::string>* value);
  // A path; --help calls it FILE. Parse refuses the flag where it is given more
  // than once: a shell's pattern or a script's mistake, and all files but one
  // would be lost.
  void AddFile(std::string name, std::string help, std::string* value);
  // A whole number from `low` to `high`.
  void AddInt(std::string name, std::string value_name, std::string help,
              int low, int high, int* value);
  // A number from `low` to `high`.
  void AddNumber(std::string name, std::string value_name, std::string help,
                 double low, double high, double* value);
  // A time with its unit, e.g. 500ms, 30s, 2m; above 0, or, with `or_none`, 0.
  void AddDuration(std::string name, std::string help, absl::Duration* value,
                   bool or_none = false);
  // On where the flag stands alone; --NAME=yes and --NAME=no say it in words.
  void AddSwitch(std::string name, std::string help, bool* value);
  // Without a default.
  void AddSwitch(std::string name, std::string help,
                 std::optional<bool>* value);
  // One of `choices`: words, each with the value that it stands for.
  template <typename T>
  void AddChoice(std::string name, std::string help,
                 std::vector<std::pair<std::string, T>> choices, T* value);

  bool Has(absl::string_view name) const { return Find(name) != nullptr; }

  // How often the command line that was parsed gives this flag.
  int Given(absl::string_view name) const;

  // Sets the values; what does not begin with a dash goes to `positional`, as
  // does everything after "--". A name takes dashes for underscores.
  // INVALID_ARGUMENT names the flag, the value and what it takes, the flags
  // that an unknown one may have meant, and a file's flag that is given again.
  absl::Status Parse(absl::Span<const std::string> arguments,
                     std::vector<std::string>* positional);

  // The flags in the order in which they were added, in lines under 80 columns.
  std::string Help() const;
  // "--format text jsonl npy", a line per flag, for the shell's completion.
  std::string Candidates() const;

 private:
  struct Flag {
    std::string name;
    std::string value_name;
    std::string help;
    std::string default_text;
    std::function<absl::Status(absl::string_view)> set;
    bool alone = false;                    // needs no value
    std::vector<std::string> values = {};  // those that are known
    bool once = false;                     // refused where given again
    int given = 0;
  };
  template <typename Value>
  void AddSwitchTo(std::string name, std::string help, std::string default_text,
                   Value* value);
  // `choose` is told the index of the word that is given.
  void AddWords(std::string name, std::string help,
                std::vector<std::string> words, std::string default_word,
                std::function<void(size_t)> choose);
  const Flag* Find(absl::string_view name) const;
  std::vector<std::string> Names() const;
  // What to say of an argument that begins with a dash and is no flag.
  absl::Status Unknown(absl::string_view argument) const;

  std::vector<Flag> flags_;
};

template <typename T>
void Flags::AddChoice(std::string name, std::string help,
                      std::vector<std::pair<std::string, T>> choices,
                      T* value) {
  std::vector<std::string> words;
  std::string default_word;
  for (const auto& [word, meaning] : choices) {
    words.push_back(word);
    if (meaning == *value) default_word = word;
  }
  AddWords(std::move(name), std::move(help), std::move(words),
           std::move(default_word),
           [value, choices = std::move(choices)](size_t index) {
             *value = choices[index].second;
           });
}

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_FLAGS_H_
