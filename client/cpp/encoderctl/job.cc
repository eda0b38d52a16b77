#include "client/cpp/encoderctl/job.h"

#include <utility>

#include "client/cpp/encoderctl/progress.h"
#include "client/cpp/error.h"

namespace encoderd::ctl {

absl::StatusOr<std::unique_ptr<TextSource>> OpenTexts(
    const Invocation& invocation) {
  const Settings& settings = invocation.settings;
  TextInput input;
  input.arguments = invocation.positional;
  input.file = settings.input;
  input.standard_input = &invocation.environment.in;
  input.descriptor = invocation.environment.in_descriptor;
  input.format = settings.input_format;
  input.field = settings.field;
  return TextSource::Open(std::move(input));
}

bool ShowProgress(const Invocation& invocation) {
  const std::string& wanted = invocation.settings.progress;
  return wanted == "always" ||
         (wanted == "auto" && invocation.environment.err_is_terminal);
}

void ExplainSilence(const Invocation& invocation) {
  if (invocation.positional.empty() && invocation.settings.input == "-" &&
      invocation.environment.in_is_terminal) {
    invocation.environment.err
        << "reading texts from standard input, one a line; end with Ctrl-D\n";
  }
}

int RunJob(const Invocation& invocation,
           const std::function<absl::Status(Job& job)>& work) {
  const Settings& settings = invocation.settings;
  auto source = OpenTexts(invocation);
  if (!source.ok()) return invocation.Usage(source.status().message());
  auto client = invocation.Connect();
  if (!client.ok()) return invocation.Usage(client.status().message());
  auto writer = Writer::Open(settings.output, settings.format == "npy",
                             invocation.environment.out);
  if (!writer.ok()) return invocation.Usage(writer.status().message());
  ExplainSilence(invocation);

  TextSource& texts = **source;
  Progress progress(ShowProgress(invocation) ? &invocation.environment.err
                                             : nullptr);
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
  const bool done_all = status.ok() && texts.texts_read() > 0;
  const absl::Status finished = (*writer)->Finish(done_all);
  long_texts.Tell(invocation.environment.err);
  if (skipped > 0) {
    invocation.environment.err << skipped << " of " << done
                               << " texts were skipped\n";
  }
  if (!status.ok()) {
    const auto index = client::GetInputIndex(status);
    return invocation.Fail(status, index ? texts.NameOf(*index) : "");
  }
  if (!finished.ok()) return invocation.Fail(finished);
  if (texts.texts_read() == 0) {
    return invocation.Usage("there are no texts to work on");
  }
  return kExitOk;
}

}  // namespace encoderd::ctl
