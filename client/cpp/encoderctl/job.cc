#include "client/cpp/encoderctl/job.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/strip.h"
#include "client/cpp/encoderctl/output_file.h"
#include "client/cpp/encoderctl/signals.h"
#include "client/cpp/error.h"

namespace encoderd::ctl {

namespace {

constexpr size_t kLongestFileName = 4096;
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
    if (text.size() > kLongestFileName ||
        !std::filesystem::is_regular_file(text, none)) {
      continue;
    }
    invocation.Note("note: \"", text, "\" is used as a text; --input=", text,
                    " reads the file");
    return;
  }
}

// What became of the output of a run that failed.
void TellWritten(const Invocation& invocation, const Writer& writer,
                 bool lost) {
  if (lost) {
    invocation.Note(writer.whole(), " texts are written",
                    writer.cut() ? "; the last line is incomplete" : "");
  } else if (invocation.settings.output != "-" && writer.whole() > 0) {
    invocation.Note(writer.whole(), " texts are written",
                    invocation.flags.Has("resume")
                        ? "; a run resumes only with an .npy"
                        : "");
  }
}

// What is in the place of a skipped text.
absl::string_view PlaceOfSkipped(const std::string& format) {
  if (format == "text") {
    return "; each is an empty line, which numpy.loadtxt drops";
  }
  return format == "npy" ? "; they have no rows" : "";
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
    invocation.Note(
        "reading texts from standard input, one per line; end with Ctrl-D");
  }
}

int RunJob(const Invocation& invocation,
           const std::function<absl::Status(Job& job)>& work) {
  const Settings& settings = invocation.settings;
  auto source = OpenTexts(invocation);
  if (!source.ok()) return invocation.Refuse(source.status());
  TextSource& texts = **source;
  std::unique_ptr<Writer> writer;
  client::ClientOptions options = invocation.ListOptions();
  options.ready = [&] {
    if (texts.Ready()) return true;
    writer->Flush().IgnoreError();  // later writes return it, too
    return false;
  };
  auto client = invocation.Connect(options);
  if (!client.ok()) return invocation.Refuse(client.status());
  auto opened = Writer::Open(settings.output, settings.format == "npy",
                             invocation.environment);
  if (!opened.ok()) return invocation.Refuse(opened.status());
  writer = *std::move(opened);
  const auto model = (*client)->GetModel(settings.model);
  if (!model.ok()) return invocation.Fail(model.status());
  // No result depends on the size of calls.
  const auto most = static_cast<int>(model->max_inputs_per_request());
  if (most > 0 && most < options.texts_per_call) {
    options.texts_per_call = most;
    options.texts_per_encode_call =
        std::min(options.texts_per_encode_call, most);
    client = invocation.Connect(options);
    if (!client.ok()) return invocation.Refuse(client.status());
  }
  ExplainSilence(invocation);

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
          [&](v1::Input* input, absl::Status* refused) -> absl::StatusOr<bool> {
            if (!texts.Ready()) {
              const absl::Status flushed = writer->Flush();
              if (!flushed.ok()) return flushed;
            }
            return texts.Next(input->mutable_text(), refused);
          },
          writer.get(),
          [&] {
            progress.Update(done + 1, texts.Share(done + 1));
            return done++;
          },
          [&](int64_t index, const absl::Status& error) {
            ++skipped;
            progress.Clear();
            invocation.Note(texts.NameOf(index),
                            ": skipped: ", client::Describe(error));
            return WriteError(settings.format, index, error, writer.get());
          },
          &long_texts};
  const absl::Status status = work(job);
  progress.Clear();
  const bool interrupted = absl::IsCancelled(status) && stop.wanted();
  const bool done_all = status.ok() && job.unfit.ok() && texts.texts_read() > 0;
  const absl::Status finished = writer->Finish(done_all);
  if (done_all && finished.ok()) progress.End(done);
  long_texts.Tell(invocation);
  if (skipped > 0) {
    invocation.Note(skipped, " of ", done, " texts were skipped",
                    PlaceOfSkipped(settings.format));
  }
  if (interrupted && finished.ok()) return invocation.Stopped(done);
  const absl::Status& failed = status.ok() || interrupted ? finished : status;
  if (!failed.ok()) {
    const auto index = client::GetInputIndex(failed);
    const int code = invocation.Fail(failed, index ? texts.NameOf(*index) : "");
    if (done > 0 && !IsBrokenPipe(failed)) {
      TellWritten(invocation, *writer, /*lost=*/!finished.ok());
    }
    return code;
  }
  if (skipped > 0 && skipped == done) return kExitFailed;  // nothing succeeded
  if (texts.texts_read() == 0) return invocation.Refuse(NoTexts());
  if (!job.unfit.ok()) return invocation.Refuse(job.unfit);
  return kExitOk;
}

}  // namespace encoderd::ctl
