#include "client/cpp/encoderctl/texts_of_run.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "client/cpp/encoderctl/input_kind.h"
#include "client/cpp/encoderctl/remedy.h"

namespace encoderd::ctl {
namespace {

constexpr size_t kLongestFileName = 4096;
constexpr int64_t kMostNamed = 100;  // skipped texts
constexpr absl::Duration kPatience = absl::Milliseconds(300);

// An argument is a text, though a flag or a file of that name may be meant.
void NoteLikelyMistakes(const Invocation& invocation) {
  std::error_code none;
  for (const std::string& text : invocation.positional) {
    absl::string_view name = text;
    if (absl::ConsumePrefix(&name, "--") &&
        invocation.flags.Has(name.substr(0, name.find('=')))) {
      invocation.Note("note: \"", text,
                      "\" follows -- and is used as a text; flags go before "
                      "--");
      return;
    }
    if (text.size() > kLongestFileName) continue;
    const bool is_file = std::filesystem::is_regular_file(text, none);
    if (!is_file &&
        (!LooksLikeFileName(text) || std::filesystem::exists(text, none))) {
      continue;
    }
    invocation.Note("note: \"", text, "\" is used as a text; ",
                    is_file ? absl::StrCat("--input=", text, " reads the file")
                            : "--input=FILE reads a file, and there is none "
                              "of this name");
    return;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextSource>> OpenTexts(
    const Invocation& invocation) {
  const Settings& settings = invocation.settings;
  if (!invocation.positional.empty() && invocation.flags.Given("input") > 0) {
    return absl::InvalidArgumentError(
        "give texts as arguments or --input, not both");
  }
  TextInput input;
  input.arguments = invocation.positional;
  input.file = settings.input;
  input.standard_input = &invocation.environment.in;
  input.descriptor = invocation.environment.in_descriptor;
  input.format = settings.input_format;
  input.field = settings.field;
  input.field_given = invocation.flags.Given("field") > 0;
  input.note = [&invocation](absl::string_view note) { invocation.Note(note); };
  NoteLikelyMistakes(invocation);
  return TextSource::Open(std::move(input));
}

absl::Status NoTexts(const Invocation& invocation) {
  const std::string& input = invocation.settings.input;
  if (invocation.positional.empty() && !input.empty() && input != "-") {
    return absl::FailedPreconditionError(absl::StrCat(input, " has no texts"));
  }
  return absl::FailedPreconditionError(
      "there are no texts to work on: give them as arguments, by --input=FILE "
      "or on standard input");
}

void NoteSkipped(const Invocation& invocation, int64_t skipped,
                 const std::string& name, const absl::Status& error) {
  if (skipped > kMostNamed) return;
  invocation.Note(name,
                  ": skipped: ", DescribeInFlags(error, invocation.flags));
  if (skipped == kMostNamed)
    invocation.Note("further skipped texts are only counted");
}

Progress MakeProgress(const Invocation& invocation, double before) {
  const ShowProgress wanted = invocation.settings.progress;
  const bool always = wanted == ShowProgress::kAlways;
  const bool shown = always || (wanted == ShowProgress::kAuto &&
                                invocation.environment.err_is_terminal);
  return Progress(shown ? &invocation.environment.err : nullptr,
                  always ? absl::ZeroDuration() : kPatience, before);
}

void ExplainSilence(const Invocation& invocation) {
  if (invocation.positional.empty() && invocation.settings.input == "-" &&
      invocation.environment.in_is_terminal) {
    invocation.Note(
        "reading texts from standard input, one per line; end with Ctrl-D");
  }
}

}  // namespace encoderd::ctl
