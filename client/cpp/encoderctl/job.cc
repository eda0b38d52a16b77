#include "client/cpp/encoderctl/job.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "client/cpp/encoderctl/output_file.h"
#include "client/cpp/encoderctl/signals.h"
#include "client/cpp/error.h"

namespace encoderd::ctl {

namespace {

constexpr size_t kLongestFileName = 4096;
constexpr absl::Duration kPatience = absl::Milliseconds(300);

// An argument is a text, though a file of that name may be meant.
void WarnOfFileNames(const Invocation& invocation) {
  std::error_code none;
  for (const std::string& text : invocation.positional) {
    if (text.size() > kLongestFileName ||
        !std::filesystem::is_regular_file(text, none)) {
      continue;
    }
    invocation.environment.err
        << "encoderctl " << invocation.command.name << ": note: \"" << text
        << "\" is used as a text; --input=" << text << " reads the file\n";
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
  input.notes = &invocation.environment.err;
  WarnOfFileNames(invocation);
  return TextSource::Open(std::move(input));
}

absl::Status NoTexts() {
  return absl::FailedPreconditionError(
      "there are no texts to work on: give them as arguments, by --input=FILE "
      "or on standard input");
}

Progress MakeProgress(const Invocation& invocation, double before) {
  const std::string& wanted = invocation.settings.progress;
  const bool always = wanted == "always";
  const bool shown =
      always || (wanted == "auto" && invocation.environment.err_is_terminal);
  return Progress(shown ? &invocation.environment.err : nullptr,
                  always ? absl::ZeroDuration() : kPatience, before);
}

void ExplainSilence(const Invocation& invocation) {
  if (invocation.positional.empty() && invocation.settings.input == "-" &&
      invocation.environment.in_is_terminal) {
    invocation.environment.err
        << "reading texts from standard input, one per line; end with Ctrl-D\n";
  }
}

int RunJob(const Invocation& invocation,
           const std::function<absl::Status(Job& job)>& work) {
  const Settings& settings = invocation.settings;
  auto source = OpenTexts(invocation);
  if (!source.ok()) return invocation.Refuse(source.status());
  auto client = invocation.Connect();
  if (!client.ok()) return invocation.Refuse(client.status());
  auto writer = Writer::Open(settings.output, settings.format == "npy",
                             invocation.environment.out);
  if (!writer.ok()) return invocation.Refuse(writer.status());
  ExplainSilence(invocation);

  TextSource& texts = **source;
  const StopOnSignal stop;
  texts.StopWhen([&stop] { return stop.wanted(); });
  // Results that scroll by show how the work goes on; a line among them would
  // be glued to one.
  const Environment& environment = invocation.environment;
  const bool one_terminal = settings.output == "-" &&
                            environment.out_is_terminal &&
                            environment.err_is_terminal;
  Progress progress =
      one_terminal ? Progress(nullptr) : MakeProgress(invocation);
  int64_t done = 0;
  int64_t skipped = 0;
  LongTexts long_texts;
  Job job{**client,
          [&texts](v1::Input* input, absl::Status* refused) {
            return texts.Next(input->mutable_text(), refused);
          },
          writer->get(),
          [&] {
            progress.Update(done + 1, texts.Progress());
            return done++;
          },
          [&](int64_t index, const absl::Status& error) {
            ++skipped;
            progress.Clear();
            invocation.environment.err
                << texts.NameOf(index)
                << ": skipped: " << client::Describe(error) << "\n";
            return WriteError(settings.format, index, error, writer->get());
          },
          &long_texts};
  const absl::Status status = work(job);
  progress.Clear();
  const bool interrupted = absl::IsCancelled(status) && stop.wanted();
  const bool done_all = status.ok() && job.unfit.ok() && texts.texts_read() > 0;
  const absl::Status finished = (*writer)->Finish(done_all);
  long_texts.Tell(invocation.environment.err);
  if (skipped > 0) {
    invocation.environment.err << skipped << " of " << done
                               << " texts were skipped\n";
  }
  if (interrupted) return invocation.Stopped(done);
  if (!status.ok()) {
    const auto index = client::GetInputIndex(status);
    const int code = invocation.Fail(status, index ? texts.NameOf(*index) : "");
    const bool to_file = settings.output != "-" && !IsBrokenPipe(status);
    if (to_file && finished.ok() && done > 0) {
      environment.err << done << " texts are written"
                      << (invocation.flags.Has("resume")
                              ? "; a run resumes only with an .npy\n"
                              : "\n");
    }
    return code;
  }
  if (!finished.ok()) return invocation.Fail(finished);
  if (skipped > 0 && skipped == done) return kExitFailed;  // nothing succeeded
  if (texts.texts_read() == 0) return invocation.Refuse(NoTexts());
  if (!job.unfit.ok()) return invocation.Refuse(job.unfit);
  return kExitOk;
}

}  // namespace encoderd::ctl
