#include "client/cpp/encoderctl/job.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/encoderctl/number.h"
#include "client/cpp/encoderctl/output_file.h"
#include "client/cpp/encoderctl/progress.h"
#include "client/cpp/encoderctl/signals.h"
#include "client/cpp/encoderctl/text_source.h"
#include "client/cpp/encoderctl/texts_of_run.h"
#include "client/cpp/error.h"
#include "client/cpp/steady_time.h"

namespace encoderd::ctl {
namespace {

constexpr absl::Duration kGoneNotes = absl::Seconds(30);  // between two

// What became of the output of a run that failed.
void TellWritten(const Invocation& invocation, const Writer& writer,
                 bool lost) {
  const std::string written = TextsAre(writer.whole(), "written");
  if (lost) {
    invocation.Note(written,
                    writer.cut() ? "; the last line is incomplete" : "");
  } else if (invocation.settings.output != "-" && writer.whole() > 0) {
    invocation.Note(written, invocation.flags.Has("resume")
                                 ? "; a run resumes only with an .npy"
                                 : "");
  }
}

// What is in the place of a skipped text.
absl::string_view PlaceOfSkipped(OutputFormat format) {
  if (format == OutputFormat::kText) {
    return "; each is an empty line, which numpy.loadtxt drops";
  }
  return format == OutputFormat::kNpy ? "; such texts have no rows" : "";
}

// One run of a command over a list.
class ListRun {
 public:
  explicit ListRun(const Invocation& invocation)
      : invocation_(invocation), settings_(invocation.settings) {}

  int Run(const std::function<absl::Status(Job& job)>& work) {
    auto source = OpenTexts(invocation_);
    if (!source.ok()) return invocation_.Refuse(source.status());
    texts_ = *std::move(source);
    if (const auto over = Connect()) return *over;
    ExplainSilence(invocation_);
    const StopOnSignal stop;
    texts_->StopWhen([&stop] { return stop.wanted(); });
    Progress progress = MakeOwnProgress();
    Job job = MakeJob(&progress);
    const absl::Status status = work(job);
    progress.Clear();
    const bool done_all =
        status.ok() && job.unfit.ok() && texts_->texts_read() > 0;
    const absl::Status finished = writer_->Finish(done_all);
    if (done_all && finished.ok()) progress.End(done_);
    long_texts_.Tell(invocation_);
    if (skipped_ > 0) {
      invocation_.Note(SkippedOf(skipped_, done_),
                       PlaceOfSkipped(settings_.format));
    }
    const bool unread = absl::IsCancelled(finished);
    const bool interrupted =
        stop.wanted() && (unread || absl::IsCancelled(status));
    if (interrupted && unread) return StoppedUnread();
    if (interrupted && finished.ok()) return invocation_.Stopped(done_);
    const absl::Status& failed = status.ok() || interrupted ? finished : status;
    if (!failed.ok()) {
      return Fail(failed, /*lost=*/!finished.ok(), job.one_result);
    }
    if (skipped_ > 0 && skipped_ == done_) return kExitFailed;
    if (texts_->texts_read() == 0)
      return invocation_.Refuse(NoTexts(invocation_));
    if (!job.unfit.ok()) return invocation_.Refuse(job.unfit);
    return kExitOk;
  }

 private:
  // Opens client and output; the exit code if that ends the run.
  std::optional<int> Connect() {
    client::ClientOptions options = invocation_.ListOptions();
    options.await_return = [this](const absl::Status&) {
      const absl::Time now = client::SteadyNow();
      if (now - told_gone_ >= kGoneNotes) {
        told_gone_ = now;
        progress_->Clear();
        invocation_.Note("lost the server at ", settings_.target,
                         "; calls wait for its return until their --timeout (",
                         absl::FormatDuration(settings_.timeout), ")");
      }
      return true;
    };
    auto client = invocation_.Connect(options);
    if (!client.ok()) return invocation_.Refuse(client.status());
    const absl::Status writable = CheckWritable(settings_.output);
    if (!writable.ok()) return invocation_.Refuse(writable);
    // Before the output is made: a run that is stopped meanwhile leaves none.
    const auto model = (*client)->GetModel(settings_.model);
    if (!model.ok()) return invocation_.Fail(model.status());
    auto opened =
        Writer::Open(settings_.output, settings_.format == OutputFormat::kNpy,
                     invocation_.environment);
    if (!opened.ok()) return invocation_.Refuse(opened.status());
    writer_ = *std::move(opened);
    client_ = *std::move(client);
    return std::nullopt;
  }

  // Results that scroll by show how the work goes on; a line among them would
  // be glued to one.
  Progress MakeOwnProgress() const {
    const Environment& environment = invocation_.environment;
    const bool one_terminal = settings_.output == "-" &&
                              environment.out_is_terminal &&
                              environment.err_is_terminal;
    return one_terminal ? Progress(nullptr) : MakeProgress(invocation_);
  }

  Job MakeJob(Progress* progress) {
    progress_ = progress;
    return {*client_,
            {[this](v1::Input* input,
                    absl::Status* refused) -> absl::StatusOr<bool> {
               if (!texts_->Ready()) {
                 const absl::Status flushed = writer_->Flush();
                 if (!flushed.ok()) return flushed;
               }
               return texts_->Next(input->mutable_text(), refused);
             },
             [this] {
               if (texts_->Ready()) return true;
               writer_->Flush().IgnoreError();  // later writes return it, too
               return false;
             }},
            writer_.get(),
            [this, progress] {
              progress->Update(done_ + 1, texts_->Share(done_ + 1));
              return done_++;
            },
            [this, progress](int64_t index, const absl::Status& error) {
              ++skipped_;
              progress->Clear();
              NoteSkipped(invocation_, skipped_, texts_->NameOf(index), error);
              return WriteError(settings_.format, index, error, writer_.get());
            },
            &long_texts_};
  }

  // A signal came while nobody read the results.
  int StoppedUnread() const {
    return invocation_.Stopped(
        writer_->whole(),
        writer_->cut() ? "; the last line is incomplete" : "");
  }

  // lost: the output could not be written.
  int Fail(const absl::Status& failed, bool lost, bool one_result) const {
    const auto index = client::GetInputIndex(failed);
    const int code =
        invocation_.Fail(failed, index ? texts_->NameOf(*index) : "");
    if (done_ > 0 && !one_result && !IsBrokenPipe(failed)) {
      TellWritten(invocation_, *writer_, lost);
    }
    return code;
  }

  const Invocation& invocation_;
  const Settings& settings_;
  std::unique_ptr<TextSource> texts_;
  std::unique_ptr<Writer> writer_;
  std::unique_ptr<client::Client> client_;
  int64_t done_ = 0;
  int64_t skipped_ = 0;
  absl::Time told_gone_ = absl::InfinitePast();
  Progress* progress_ = nullptr;  // of the job
  LongTexts long_texts_;
};

}  // namespace

int RunJob(const Invocation& invocation,
           const std::function<absl::Status(Job& job)>& work) {
  return ListRun(invocation).Run(work);
}

}  // namespace encoderd::ctl
