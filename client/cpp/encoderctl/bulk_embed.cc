#include "client/cpp/encoderctl/bulk_embed.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "client/cpp/encoderctl/number.h"
#include "client/cpp/encoderctl/progress.h"
#include "client/cpp/encoderctl/resumable_output.h"
#include "client/cpp/encoderctl/resume_mark.h"
#include "client/cpp/encoderctl/row_file.h"
#include "client/cpp/encoderctl/scales_file.h"
#include "client/cpp/encoderctl/signals.h"
#include "client/cpp/encoderctl/text_source.h"
#include "client/cpp/encoderctl/texts_of_run.h"
#include "client/cpp/encoderctl/writer.h"

namespace encoderd::ctl {
namespace {

class BulkRun {
 public:
  BulkRun(const Invocation& invocation, const BulkChoices& choices)
      : invocation_(invocation), choices_(choices) {}

  int Run() {
    const Settings& settings = invocation_.settings;
    if (settings.in_flight > client::kMostCallsInFlight) {
      return invocation_.Usage(absl::StrCat(
          "--in_flight is ", settings.in_flight,
          "; with an .npy it is at most ", client::kMostCallsInFlight));
    }
    auto source = OpenTexts(invocation_);
    if (!source.ok()) return invocation_.Refuse(source.status());
    source_ = *std::move(source);
    auto client = invocation_.Connect();
    if (!client.ok()) return invocation_.Refuse(client.status());
    const auto model = (*client)->GetModel(settings.model);
    if (!model.ok()) return invocation_.Fail(model.status());
    if (model->dimensions() == 0) {
      return invocation_.Fail(absl::InternalError(
          "the server's vectors have 0 dimensions; is it an encoderd?"));
    }
    ExplainSilence(invocation_);
    const StopOnSignal stop;
    source_->StopWhen([&stop] { return stop.wanted(); });
    auto output = OpenOutput(*model);
    if (!output.ok()) return invocation_.Refuse(output.status());
    output_ = *std::move(output);
    const absl::Status resumed = choices_.resume ? Resume() : absl::OkStatus();
    if (absl::IsCancelled(resumed) || absl::IsDataLoss(resumed) ||
        broken_input_) {
      return Report(resumed);
    }
    if (!resumed.ok()) return invocation_.Refuse(resumed);
    return Report(Work(**client, *model, stop));
  }

 private:
  absl::StatusOr<std::unique_ptr<ResumableOutput>> OpenOutput(
      const v1::Model& model) {
    const client::EmbedOptions& embed = choices_.embed;
    layout_ =
        LayoutOf(embed.encoding,
                 embed.dimensions > 0 ? embed.dimensions : model.dimensions());
    return ResumableOutput::Open(
        {invocation_.settings.output, layout_, HasOwnScale(embed.encoding),
         MarkWork(model, embed), skip_bad()},
        [this](const std::string& path) {
          return invocation_.WouldOverwriteInput(path);
        });
  }

  // Continues after the rows that an interrupted run of the same work left.
  absl::Status Resume() {
    if (output_->empty()) return absl::OkStatus();
    const auto found = output_->Resume(source_.get());
    broken_input_ = absl::IsInvalidArgument(found.status());
    if (!found.ok()) return found.status();
    before_ = found->rows;
    skipped_ = found->skipped;
    if (before_ == 0) {
      invocation_.Note(invocation_.settings.output,
                       " will be replaced: there is no run to resume");
      return absl::OkStatus();
    }
    invocation_.Note(
        "Resuming: ", Texts(before_), " already done",
        skipped_ > 0 ? absl::StrCat(", ", skipped_, " of them skipped") : "",
        ".");
    return output_->Begin();
  }

  absl::StatusOr<bool> Next(v1::Input* input, absl::Status* refused) {
    const absl::StatusOr<bool> more =
        source_->Next(input->mutable_text(), refused);
    if (more.ok() && *more) {
      pending_.push_back(MarkText(input->text(), *refused));
    }
    broken_input_ = absl::IsInvalidArgument(more.status());
    return more;
  }

  absl::Status Work(const client::Client& client, const v1::Model& model,
                    const StopOnSignal& stop) {
    Progress progress = MakeProgress(invocation_, source_->Share(before_));
    progress_ = &progress;
    client::BulkOptions options;
    options.first_input = before_;
    options.texts_per_call = invocation_.settings.batch_size;
    options.calls_in_flight = invocation_.settings.in_flight;
    options.patience = invocation_.settings.timeout;
    options.stop = [&stop] { return stop.wanted(); };
    options.seen_fingerprint = model.fingerprint();
    absl::Status status = client.EmbedBulk(
        {[this](v1::Input* input, absl::Status* refused) {
           return Next(input, refused);
         },
         [this] { return source_->Ready(); }},
        choices_.embed, options,
        [this](const client::BulkAnswer& answer) { return Take(answer); });
    progress_ = nullptr;
    progress.Clear();
    const int64_t added = output_->done() - before_;
    if (status.ok() && added > 0) progress.End(added);
    return status;
  }

  // Writes the rows of an answer up to the first bad text, if that ends it.
  absl::Status Take(const client::BulkAnswer& answer) {
    std::vector<OutputRow> rows;
    absl::Status bad;
    int64_t bad_line = -1;
    for (size_t i = 0; i < answer.errors.size(); ++i) {
      const v1::Embedding& embedding = answer.embeddings[i];
      OutputRow row{pending_.front(), embedding.packed(), embedding.scale()};
      if (!answer.errors[i].ok()) {
        const int64_t line = answer.first_input + static_cast<int64_t>(i);
        if (!skip_bad()) {
          bad = answer.errors[i];
          bad_line = line;
          break;
        }
        Skip(line, answer.errors[i]);
        row.text_mark = MarkSkipped(row.text_mark);
        row.bytes.assign(layout_.row_bytes(), '\0');
      } else if (static_cast<int64_t>(row.bytes.size()) !=
                 layout_.row_bytes()) {
        bad = absl::InternalError(
            absl::StrCat("the server returned a vector of ", row.bytes.size(),
                         " bytes; expected ", layout_.row_bytes()));
        break;
      } else {
        long_texts_.Count(embedding.truncated(), embedding.windows());
      }
      rows.push_back(std::move(row));
      pending_.pop_front();
    }
    absl::Status status = output_->Append(rows);
    // A failed write is not the text's fault.
    if (status.ok()) bad_line_ = bad_line;
    status.Update(bad);
    progress_->Update(output_->done() - before_,
                      source_->Share(output_->done()));
    return status;
  }

  void Skip(int64_t line, const absl::Status& error) {
    ++skipped_;
    progress_->Clear();
    NoteSkipped(invocation_, skipped_, source_->NameOf(line), error);
  }

  bool skip_bad() const {
    return choices_.embed.on_error == v1::ON_ERROR_PER_INPUT;
  }

  // After "N texts are done", if any are.
  std::string HowToResume(absl::string_view first = "") const {
    if (!choices_.resume || output_->done() == 0) return "";
    return absl::StrCat("; to resume, ", first, "repeat the command");
  }

  int Report(const absl::Status& status) {
    long_texts_.Tell(invocation_);
    const int code = ReportEnd(status);
    if (code != kExitOk && !output_->begun() && output_->found()) {
      invocation_.Note(invocation_.settings.output, " is left as it was");
    }
    return code;
  }

  int ReportEnd(const absl::Status& status) {
    if (absl::IsCancelled(status)) {
      return invocation_.Stopped(output_->done(), HowToResume());
    }
    if (!status.ok()) return ReportFailed(status);
    const absl::Status closed = output_->Close();
    if (!closed.ok()) return invocation_.Fail(closed);
    if (source_->texts_read() == 0)
      return invocation_.Refuse(NoTexts(invocation_));
    const int64_t done = output_->done();
    if (skipped_ > 0) {
      invocation_.Note(SkippedOf(skipped_, done), "; their rows are all zeros");
    }
    return skipped_ > 0 && skipped_ == done ? kExitFailed : kExitOk;
  }

  int ReportFailed(const absl::Status& status) {
    const bool blames = bad_line_ >= 0;
    const int code =
        invocation_.Fail(status, blames ? source_->NameOf(bad_line_) : "");
    const std::string done = TextsAre(output_->done(), "done");
    const bool other_model = absl::IsFailedPrecondition(status);
    if (other_model && output_->done() > 0) {
      invocation_.Note(done, " by the earlier model; ",
                       "--resume=no discards them and starts over");
    }
    const std::string how =
        other_model ? ""
                    : HowToResume(blames          ? "correct this text and "
                                  : broken_input_ ? "correct the file and "
                                                  : "");
    if (!how.empty()) invocation_.Note(done, how);
    return code;
  }

  const Invocation& invocation_;
  BulkChoices choices_;
  RowLayout layout_;
  std::unique_ptr<TextSource> source_;
  std::unique_ptr<ResumableOutput> output_;
  std::deque<std::string> pending_;  // marks of texts that were not answered
  int64_t before_ = 0;               // rows of earlier runs
  int64_t skipped_ = 0;              // of all rows
  LongTexts long_texts_;
  int64_t bad_line_ = -1;
  bool broken_input_ = false;  // nothing behind the last text can be read
  Progress* progress_ = nullptr;
};

}  // namespace

int RunBulkEmbed(const Invocation& invocation, const BulkChoices& choices) {
  return BulkRun(invocation, choices).Run();
}

}  // namespace encoderd::ctl
