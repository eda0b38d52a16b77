#include "client/cpp/encoderctl/bulk_embed.h"

#include <algorithm>
#include <deque>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/bulk_work.h"
#include "client/cpp/encoderctl/job.h"
#include "client/cpp/encoderctl/journal.h"
#include "client/cpp/encoderctl/output_file.h"
#include "client/cpp/encoderctl/progress.h"
#include "client/cpp/encoderctl/row_file.h"
#include "client/cpp/encoderctl/signals.h"
#include "client/cpp/encoderctl/text_source.h"
#include "client/cpp/error.h"

namespace encoderd::ctl {
namespace {

const RowLayout kScaleLayout{"<f4", 1, 4};

RowLayout LayoutOf(const std::string& encoding, int64_t dimensions) {
  if (encoding == "float16") return {"<f2", dimensions, 2};
  if (encoding == "int8") return {"|i1", dimensions, 1};
  if (encoding == "uint8") return {"|u1", dimensions, 1};
  if (encoding == "binary") return {"|i1", (dimensions + 7) / 8, 1};
  if (encoding == "ubinary") return {"|u1", (dimensions + 7) / 8, 1};
  return {"<f4", dimensions, 4};
}

class BulkRun {
 public:
  BulkRun(const Invocation& invocation, const BulkChoices& choices)
      : invocation_(invocation), choices_(choices) {}

  int Run() {
    const Settings& settings = invocation_.settings;
    if (settings.in_flight > client::kMostCallsInFlight) {
      return invocation_.Usage(
          absl::StrCat("--in_flight is ", settings.in_flight,
                       "; into an .npy at most ", client::kMostCallsInFlight));
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
          "the server says that its vectors have no values"));
    }
    const absl::Status opened = OpenOutput(*model);
    if (!opened.ok()) return invocation_.Refuse(opened);
    ExplainSilence(invocation_);
    const StopOnSignal stop;
    source_->StopWhen([&stop] { return stop.wanted(); });
    return Report(Work(**client, stop));
  }

 private:
  absl::Status OpenOutput(const v1::Model& model) {
    const std::string& output = invocation_.settings.output;
    const uint32_t asked = choices_.embed.dimensions;
    layout_ =
        LayoutOf(choices_.encoding, asked > 0 ? asked : model.dimensions());
    own_ranges_ = choices_.encoding == "int8" || choices_.encoding == "uint8";
    scales_path_ = absl::StrCat(output, ".scales.npy");
    journal_path_ = JournalOf(output);
    // What is no file (a pipe) is not there for a second run.
    std::error_code no_file;
    from_file_ =
        invocation_.positional.empty() && invocation_.settings.input != "-" &&
        std::filesystem::is_regular_file(invocation_.settings.input, no_file);
    resumable_ = from_file_ && choices_.resume;
    most_texts_ = static_cast<int>(model.max_inputs_per_request());
    for (const std::string& path : {scales_path_, journal_path_}) {
      if (!invocation_.WouldOverwriteInput(path)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(path,
                       ", which goes with --output, is the file of "
                       "--input"));
    }
    const absl::Status locked = lock_.Take(output);
    if (!locked.ok()) return locked;
    work_ = NameWork(invocation_.settings, choices_.embed, model);
    if (choices_.resume) {
      const absl::Status found = FindJournal();
      if (!found.ok()) return found;
    }
    before_ = done_.rows;
    if (done_.rows == 0) return absl::OkStatus();
    source_->Skip(done_.rows, done_.bytes);
    invocation_.environment.err << "going on after " << done_.rows
                                << " texts that are done\n";
    return OpenRows();
  }

  // Sets done_ to what an earlier run of this work left. FAILED_PRECONDITION
  // if what is there is not this run's to throw away: unfinished rows of other
  // work, or of nobody knows which.
  absl::Status FindJournal() {
    const JournalFound found = ReadJournal(journal_path_);
    const std::string& output = invocation_.settings.output;
    const int64_t rows = found.done.rows;
    const bool at_stake = lock_.found();
    if (found.damaged_line == 1 && at_stake) {
      return absl::FailedPreconditionError(
          absl::StrCat(journal_path_, " is damaged: what is done of ", output,
                       " is not known; --resume=no starts anew"));
    }
    if (!found.work.empty() && found.work != work_) {
      if (rows == 0 || !at_stake) return absl::OkStatus();
      return absl::FailedPreconditionError(absl::StrCat(
          output, " holds ", rows, " rows of unfinished work, and ",
          Difference(found.work, work_),
          " changed since; the command of then goes on with it, --resume=no "
          "starts anew"));
    }
    if (found.damaged_line > 1) {
      invocation_.environment.err << journal_path_ << " is damaged from line "
                                  << found.damaged_line
                                  << " on; what it says before counts\n";
    }
    if (RowFile::Holds(invocation_.settings.output, layout_, rows) &&
        (!own_ranges_ || RowFile::Holds(scales_path_, kScaleLayout, rows))) {
      done_ = found.done;
    }
    return absl::OkStatus();
  }

  // Once, when there is a row to write: until then what an earlier run left is
  // not touched. The journal comes first, for it must never speak of rows that
  // others have taken the place of.
  absl::Status OpenRows() {
    if (rows_ != nullptr) return absl::OkStatus();
    if (from_file_) {
      const absl::Status begun = journal_.Begin(journal_path_, work_, done_);
      if (!begun.ok()) return begun;
    } else {
      std::error_code ignored;  // mostly there is none
      std::filesystem::remove(journal_path_, ignored);
    }
    if (own_ranges_) {
      auto file = RowFile::Open(scales_path_, kScaleLayout, done_.rows);
      if (!file.ok()) return file.status();
      scales_ = *std::move(file);
    }
    auto rows = RowFile::Open(invocation_.settings.output, layout_, done_.rows);
    if (!rows.ok()) return rows.status();
    rows_ = *std::move(rows);
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Next(v1::Input* input, absl::Status* refused) {
    const absl::StatusOr<bool> more =
        source_->Next(input->mutable_text(), refused);
    if (more.ok() && *more) ends_.push_back(source_->bytes_read());
    return more;
  }

  absl::Status Work(const client::Client& client, const StopOnSignal& stop) {
    Progress progress(
        ShowProgress(invocation_) ? &invocation_.environment.err : nullptr,
        source_->Progress());
    progress_ = &progress;
    client::BulkOptions options;
    options.first_input = done_.rows;
    options.texts_per_call = invocation_.settings.batch_size;
    if (most_texts_ > 0) {
      options.texts_per_call = std::min(options.texts_per_call, most_texts_);
    }
    options.calls_in_flight = invocation_.settings.in_flight;
    options.patience = invocation_.settings.timeout;
    options.stop = [&stop] { return stop.wanted(); };
    absl::Status status = client.EmbedBulk(
        [this](v1::Input* input, absl::Status* refused) {
          return Next(input, refused);
        },
        choices_.embed, options,
        [this](const client::BulkAnswer& answer) { return Take(answer); });
    progress_ = nullptr;
    progress.Clear();
    if (rows_ != nullptr) status.Update(rows_->WriteHead());
    if (scales_ != nullptr) status.Update(scales_->WriteHead());
    return status;
  }

  // Writes the rows of an answer up to the first bad text, if that ends it.
  absl::Status Take(const client::BulkAnswer& answer) {
    std::string rows;
    std::string scales;
    absl::Status bad;
    Progressed done = done_;
    for (size_t i = 0; i < answer.errors.size(); ++i) {
      const v1::Embedding& embedding = answer.embeddings[i];
      bad = answer.errors[i];
      if (!bad.ok()) {
        bad_line_ = answer.first_input + static_cast<int64_t>(i);
        if (!skip_bad()) break;
        Skip(bad);
        bad = absl::OkStatus();
        rows.append(layout_.row_bytes(), '\0');
      } else if (static_cast<int64_t>(embedding.packed().size()) !=
                 layout_.row_bytes()) {
        bad = absl::InternalError(absl::StrCat(
            "the server answered a vector of ", embedding.packed().size(),
            " bytes; expected ", layout_.row_bytes()));
        break;
      } else {
        long_texts_.Count(embedding.truncated(), embedding.windows());
        rows += embedding.packed();
      }
      const float scale = embedding.scale();
      scales.append(reinterpret_cast<const char*>(&scale), sizeof(scale));
      done.bytes = ends_.front();
      ends_.pop_front();
      ++done.rows;
    }
    absl::Status status = Write(done, rows, scales);
    status.Update(bad);
    progress_->Update(done_.rows - before_,
                      source_->Share(done_.rows, done_.bytes));
    return status;
  }

  // Appends the rows that come to `done`.
  absl::Status Write(const Progressed& done, const std::string& rows,
                     const std::string& scales) {
    if (done.rows == done_.rows) return absl::OkStatus();
    absl::Status status = OpenRows();
    if (status.ok()) status = rows_->Append(rows);
    if (status.ok() && scales_ != nullptr) status = scales_->Append(scales);
    if (status.ok()) status = journal_.Add(done);
    if (status.ok()) done_ = done;
    return status;
  }

  void Skip(const absl::Status& error) {
    ++skipped_;
    progress_->Clear();
    invocation_.environment.err << source_->NameOf(bad_line_)
                                << ": skipped: " << client::Describe(error)
                                << "\n";
  }

  bool skip_bad() const {
    return choices_.embed.on_error == v1::ON_ERROR_PER_INPUT;
  }

  const char* HowToGoOn() const {
    return resumable_ ? "; the same command goes on from there" : "";
  }

  int Report(const absl::Status& status) {
    long_texts_.Tell(invocation_.environment.err);
    const int code = ReportEnd(status);
    if (code != kExitOk && rows_ == nullptr && lock_.found()) {
      invocation_.environment.err << invocation_.settings.output
                                  << " is left as it was\n";
    }
    return code;
  }

  int ReportEnd(const absl::Status& status) {
    if (absl::IsCancelled(status)) {
      return invocation_.Stopped(done_.rows, done_.rows > 0 ? HowToGoOn() : "");
    }
    if (!status.ok()) {
      const bool blames = bad_line_ >= 0 && !skip_bad();
      const int code =
          invocation_.Fail(status, blames ? source_->NameOf(bad_line_) : "");
      // A bad text must change first, and then the rows are not gone on with.
      if (!blames && resumable_ && done_.rows > 0) {
        invocation_.environment.err << done_.rows << " texts are done"
                                    << HowToGoOn() << "\n";
      }
      return code;
    }
    journal_.Remove();
    if (source_->texts_read() == 0) {
      return invocation_.Refuse(NoTexts());
    }
    if (skipped_ > 0) {
      invocation_.environment.err << skipped_ << " of " << done_.rows - before_
                                  << " texts were skipped; their rows are 0\n";
    }
    return kExitOk;
  }

  const Invocation& invocation_;
  const BulkChoices& choices_;
  OutputLock lock_;
  std::unique_ptr<TextSource> source_;
  RowLayout layout_;
  bool own_ranges_ = false;
  std::string scales_path_;
  std::string journal_path_;
  std::string work_;
  std::unique_ptr<RowFile> rows_;    // null: none was written
  std::unique_ptr<RowFile> scales_;  // null: nor its scale, or there are none
  Journal journal_;
  std::deque<int64_t> ends_;  // of each text that was read and not answered
  Progressed done_;
  bool from_file_ = false;
  bool resumable_ = false;
  int most_texts_ = 0;  // of one request, as the server has it; 0: not known
  int64_t before_ = 0;  // rows of earlier runs
  int64_t skipped_ = 0;
  LongTexts long_texts_;
  int64_t bad_line_ = -1;
  Progress* progress_ = nullptr;
};

}  // namespace

int RunBulkEmbed(const Invocation& invocation, const BulkChoices& choices) {
  return BulkRun(invocation, choices).Run();
}

}  // namespace encoderd::ctl
