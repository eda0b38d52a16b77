#include "client/cpp/encoderctl/bulk_embed.h"

#include <deque>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/finished_rows.h"
#include "client/cpp/encoderctl/job.h"
#include "client/cpp/encoderctl/npy.h"
#include "client/cpp/encoderctl/number.h"
#include "client/cpp/encoderctl/output_file.h"
#include "client/cpp/encoderctl/progress.h"
#include "client/cpp/encoderctl/remedy.h"
#include "client/cpp/encoderctl/resume_mark.h"
#include "client/cpp/encoderctl/row_file.h"
#include "client/cpp/encoderctl/scales_file.h"
#include "client/cpp/encoderctl/signals.h"
#include "client/cpp/encoderctl/text_source.h"
#include "client/cpp/error.h"

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
    const absl::Status opened = OpenOutput(*model);
    if (absl::IsCancelled(opened) || absl::IsDataLoss(opened) ||
        broken_input_) {
      return Report(opened);
    }
    if (!opened.ok()) return invocation_.Refuse(opened);
    return Report(Work(**client, stop));
  }

 private:
  absl::Status OpenOutput(const v1::Model& model) {
    const std::string& output = invocation_.settings.output;
    const uint32_t asked = choices_.embed.dimensions;
    layout_ = LayoutOf(choices_.embed.encoding,
                       asked > 0 ? asked : model.dimensions());
    scales_path_ = ScalesPathOf(output);
    absl::Status status = lock_.Take(output);
    if (!status.ok()) return status;
    resume_path_ = ResumePathOf(output);
    status = TakeSideFiles();
    if (!status.ok()) return status;
    work_ = MarkWork(model, choices_.embed);
    fingerprint_ = model.fingerprint();
    return choices_.resume ? Resume() : absl::OkStatus();
  }

  // Locks the files that go with the output, as it is: they may be the output
  // of another run, or another name of this one's.
  absl::Status TakeSideFiles() {
    for (const std::string& path : {scales_path_, resume_path_}) {
      if (!invocation_.WouldOverwriteInput(path)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(path, ", which goes with --output, is also --input"));
    }
    absl::Status status = CheckDistinct(
        {invocation_.settings.output, scales_path_, resume_path_});
    if (status.ok()) {
      status = marks_lock_.Take(resume_path_, Links::kRefuse);
    }
    if (status.ok() && has_scales()) {
      status = scales_lock_.Take(scales_path_, Links::kRefuse);
    }
    if (status.ok()) status = CheckMarksFile(resume_path_);
    if (status.ok() && has_scales()) status = CheckScalesFile(scales_path_);
    return status;
  }

  // Sets done_ to the rows that an interrupted run of the same work left.
  absl::Status Resume() {
    const std::string& output = invocation_.settings.output;
    std::error_code none;
    if (std::filesystem::file_size(output, none) == 0) return absl::OkStatus();
    const auto found = FindFinishedRows(
        {output, resume_path_, has_scales() ? scales_path_ : "", work_, layout_,
         skip_bad()},
        source_.get());
    broken_input_ = absl::IsInvalidArgument(found.status());
    if (!found.ok()) return found.status();
    before_ = done_ = found->rows;
    skipped_ = found->skipped;
    if (done_ == 0) {
      invocation_.Note(output, " will be replaced: there is no run to resume");
      return absl::OkStatus();
    }
    invocation_.Note(
        "Resuming: ", Texts(done_), " already done",
        skipped_ > 0 ? absl::StrCat(", ", skipped_, " of them skipped") : "",
        ".");
    return OpenRows();
  }

  // Once, when there is a row to write. The marks come first: they never count
  // rows that others have taken the place of.
  absl::Status OpenRows() {
    if (rows_ != nullptr) return absl::OkStatus();
    const auto open = [](const std::string& path, const RowLayout& layout,
                         int64_t rows, std::unique_ptr<RowFile>* opened,
                         Links links = Links::kRefuse) {
      auto file = RowFile::Open(path, layout, rows, links);
      if (!file.ok()) return file.status();
      *opened = *std::move(file);
      return absl::OkStatus();
    };
    absl::Status status = open(resume_path_, kMarkLayout,
                               done_ > 0 ? done_ + kWorkMarks : 0, &marks_);
    if (status.ok() && done_ == 0) status = marks_->Append(work_);
    if (status.ok() && !has_scales() && done_ == 0) {
      RemoveOldScales(invocation_.settings.output, scales_path_);
    }
    if (status.ok() && has_scales()) {
      status = open(scales_path_, kScaleLayout, done_, &scales_);
    }
    if (status.ok()) {
      status = open(invocation_.settings.output, layout_, done_, &rows_,
                    Links::kFollow);
    }
    return status;
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

  absl::Status Work(const client::Client& client, const StopOnSignal& stop) {
    Progress progress = MakeProgress(invocation_, source_->Share(done_));
    progress_ = &progress;
    client::BulkOptions options;
    options.first_input = done_;
    options.texts_per_call = invocation_.settings.batch_size;
    options.calls_in_flight = invocation_.settings.in_flight;
    options.patience = invocation_.settings.timeout;
    options.stop = [&stop] { return stop.wanted(); };
    options.ready = [this] { return source_->Ready(); };
    options.seen_fingerprint = fingerprint_;
    absl::Status status = client.EmbedBulk(
        [this](v1::Input* input, absl::Status* refused) {
          return Next(input, refused);
        },
        choices_.embed, options,
        [this](const client::BulkAnswer& answer) { return Take(answer); });
    progress_ = nullptr;
    progress.Clear();
    if (status.ok() && done_ > before_) progress.End(done_ - before_);
    return status;
  }

  // Writes the rows of an answer up to the first bad text, if that ends it.
  absl::Status Take(const client::BulkAnswer& answer) {
    std::string rows;
    std::string scales;
    std::string marks;
    absl::Status bad;
    int64_t bad_line = -1;
    size_t i = 0;
    for (; i < answer.errors.size(); ++i) {
      const v1::Embedding& embedding = answer.embeddings[i];
      bad = answer.errors[i];
      if (!bad.ok()) {
        const int64_t line = answer.first_input + static_cast<int64_t>(i);
        if (!skip_bad()) {
          bad_line = line;
          break;
        }
        Skip(line, bad);
        pending_.front() = MarkSkipped(pending_.front());
        bad = absl::OkStatus();
        rows.append(layout_.row_bytes(), '\0');
      } else if (static_cast<int64_t>(embedding.packed().size()) !=
                 layout_.row_bytes()) {
        bad = absl::InternalError(absl::StrCat(
            "the server returned a vector of ", embedding.packed().size(),
            " bytes; expected ", layout_.row_bytes()));
        break;
      } else {
        long_texts_.Count(embedding.truncated(), embedding.windows());
        rows += embedding.packed();
      }
      const float number = embedding.scale();
      const absl::string_view scale(reinterpret_cast<const char*>(&number),
                                    sizeof(number));
      scales.append(scale.data(), scale.size());
      marks += pending_.front();
      marks += MarkRow(
          absl::string_view(rows).substr(rows.size() - layout_.row_bytes()),
          has_scales() ? scale : "");
      pending_.pop_front();
    }
    absl::Status status = Write(static_cast<int64_t>(i), rows, scales, marks);
    // A failed write is not the text's fault.
    if (status.ok()) bad_line_ = bad_line;
    status.Update(bad);
    progress_->Update(done_ - before_, source_->Share(done_));
    return status;
  }

  // The marks come last: the rows that they count are there.
  absl::Status Write(int64_t count, const std::string& rows,
                     const std::string& scales, const std::string& marks) {
    if (count == 0) return absl::OkStatus();
    absl::Status status = OpenRows();
    if (status.ok() && scales_ != nullptr) status = scales_->Append(scales);
    if (status.ok()) status = rows_->Append(rows);
    if (status.ok()) status = marks_->Append(marks);
    if (status.ok()) done_ += count;
    return status;
  }

  void Skip(int64_t line, const absl::Status& error) {
    ++skipped_;
    progress_->Clear();
    NoteSkipped(invocation_, skipped_, source_->NameOf(line), error);
  }

  bool has_scales() const { return HasOwnScale(choices_.embed.encoding); }

  bool skip_bad() const {
    return choices_.embed.on_error == v1::ON_ERROR_PER_INPUT;
  }

  // After "N texts are done", if any are.
  std::string HowToResume(absl::string_view first = "") const {
    if (!choices_.resume || done_ == 0) return "";
    return absl::StrCat("; to resume, ", first, "repeat the command");
  }

  int Report(const absl::Status& status) {
    long_texts_.Tell(invocation_);
    const int code = ReportEnd(status);
    if (code != kExitOk && rows_ == nullptr && lock_.found()) {
      invocation_.Note(invocation_.settings.output, " is left as it was");
    }
    return code;
  }

  int ReportEnd(const absl::Status& status) {
    if (absl::IsCancelled(status)) {
      return invocation_.Stopped(done_, HowToResume());
    }
    if (!status.ok()) {
      const bool blames = bad_line_ >= 0;
      const int code =
          invocation_.Fail(status, blames ? source_->NameOf(bad_line_) : "");
      const bool other_model = absl::IsFailedPrecondition(status);
      if (other_model && done_ > 0) {
        invocation_.Note(TextsAre(done_, "done"), " by the earlier model; ",
                         "--resume=no discards them and starts over");
      }
      const std::string how =
          other_model ? ""
                      : HowToResume(blames          ? "correct this text and "
                                    : broken_input_ ? "correct the file and "
                                                    : "");
      if (!how.empty()) invocation_.Note(TextsAre(done_, "done"), how);
      return code;
    }
    if (rows_ != nullptr) {
      absl::Status closed = rows_->Close();
      if (scales_ != nullptr) closed.Update(scales_->Close());
      if (!closed.ok()) return invocation_.Fail(closed);
      std::error_code ignored;
      std::filesystem::remove(resume_path_, ignored);
    }
    if (source_->texts_read() == 0)
      return invocation_.Refuse(NoTexts(invocation_));
    if (skipped_ > 0) {
      invocation_.Note(SkippedOf(skipped_, done_), "; such rows are all zeros");
    }
    return skipped_ > 0 && skipped_ == done_ ? kExitFailed : kExitOk;
  }

  const Invocation& invocation_;
  BulkChoices choices_;
  OutputLock lock_;
  OutputLock marks_lock_;
  OutputLock scales_lock_;
  std::unique_ptr<TextSource> source_;
  RowLayout layout_;
  std::string scales_path_;
  std::string resume_path_;
  std::string work_;                 // marks of model and options
  std::string fingerprint_;          // of the model that the server described
  std::unique_ptr<RowFile> rows_;    // null: none was written
  std::unique_ptr<RowFile> scales_;  // null: nor its scale, or there are none
  std::unique_ptr<RowFile> marks_;   // null: nor its mark
  std::deque<std::string> pending_;  // marks of texts that were not answered
  int64_t done_ = 0;                 // rows of the output
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
