#include "client/cpp/encoderctl/job.h"

#include "client/cpp/encoderctl/progress.h"
#include "client/cpp/encoderctl/text_source.h"
#include "client/cpp/error.h"

namespace encoderd::ctl {

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
  auto source = TextSource::Open(invocation.positional, settings.input,
                                 invocation.environment.in);
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
  Job job{
      **client,
      [&texts](v1::Input* input) { return texts.Next(input->mutable_text()); },
      writer->get(),
      [&] {
        progress.Update(done + 1, texts.Progress());
        return done++;
      },
      [&](int64_t index, const absl::Status& error) {
        ++skipped;
        progress.Clear();
        invocation.environment.err << texts.NameOf(index)
                                   << ": skipped: " << client::Describe(error)
                                   << "\n";
        return WriteError(settings.format, index, error, writer->get());
      },
      &long_texts};
  const absl::Status status = work(job);
  progress.Clear();
  const absl::Status finished = (*writer)->Finish();
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
