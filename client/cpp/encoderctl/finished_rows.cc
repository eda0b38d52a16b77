#include "client/cpp/encoderctl/finished_rows.h"

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/resume_mark.h"
#include "client/cpp/encoderctl/scales_file.h"

namespace encoderd::ctl {
namespace {

absl::Status Keep(absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat(why, "; --resume=no discards these rows and starts over"));
}

absl::Status CheckHolds(const ResumableWork& run, const std::string& path,
                        const RowLayout& layout, int64_t done) {
  const auto rows = RowFile::RowsIn(path, layout);
  if (!rows.ok()) return Keep(rows.status().message());
  if (*rows >= done) return absl::OkStatus();
  return Keep(absl::StrCat(run.marks, " counts ", done, " rows and ", path,
                           " holds ", *rows));
}

absl::Status Changed(const ResumableWork& run, int64_t done,
                     absl::string_view what,
                     absl::string_view remedy = "repeat its command") {
  return Keep(absl::StrCat(run.output, " holds ", done,
                           " rows of an interrupted run, and ", what,
                           "; to resume it, ", remedy));
}

absl::Status OtherRow(const ResumableWork& run, int64_t i) {
  return Keep(absl::StrCat(
      "row ", i, " of ", run.output,
      run.scales.empty() ? "" : absl::StrCat(" or of ", run.scales),
      " is not what the interrupted run wrote; the rows cannot be used"));
}

absl::Status Skipped(const ResumableWork& run, const std::string& text) {
  return Keep(absl::StrCat(run.output,
                           " holds rows of an interrupted run that skipped ",
                           text, "; to resume it, add --on_error=skip"));
}

absl::Status CheckWork(const ResumableWork& run, int64_t done,
                       RowStream* marks) {
  const size_t half = run.work.size() / 2;
  if (marks->Next() != run.work.substr(0, half)) {
    return Changed(run, done, "the model changed since",
                   "serve the model that it had, and repeat its command");
  }
  if (marks->Next() != run.work.substr(half)) {
    return Changed(run, done, "the options changed since");
  }
  absl::Status whole = CheckHolds(run, run.output, run.layout, done);
  if (!run.scales.empty()) {
    whole.Update(CheckHolds(run, run.scales, kScaleLayout, done));
  }
  return whole;
}

}  // namespace

absl::StatusOr<FinishedRows> FindFinishedRows(const ResumableWork& run,
                                              TextSource* source) {
  FinishedRows finished;
  const auto marked = RowFile::RowsIn(run.marks, kMarkLayout);
  if (!marked.ok()) return Keep(marked.status().message());
  const int64_t done = *marked - kWorkMarks;
  if (done <= 0) return finished;
  RowStream marks(run.marks, kMarkLayout);
  const absl::Status same = CheckWork(run, done, &marks);
  if (!same.ok()) return same;
  RowStream written(run.output, run.layout);
  RowStream scales(run.scales, kScaleLayout);
  for (int64_t i = 0; i < done; ++i) {
    std::string text;
    absl::Status refused;
    const auto more = source->Next(&text, &refused);
    if (!more.ok()) return more.status();
    const std::string mark = MarkText(text, refused);
    const std::string both = marks.Next();
    const std::string found = both.substr(0, kTextMarkBytes);
    const bool skipped = found == MarkSkipped(mark);
    if (!*more) {
      return Changed(run, done, absl::StrCat("the input ends after text ", i));
    }
    if (found != mark && !skipped) {
      return Changed(
          run, done,
          absl::StrCat("the text of ", source->NameOf(i), " changed since"));
    }
    if (both.substr(kTextMarkBytes) !=
        MarkRow(written.Next(), run.scales.empty() ? "" : scales.Next())) {
      return OtherRow(run, i);
    }
    if (skipped && !run.skips) return Skipped(run, source->NameOf(i));
    finished.skipped += skipped ? 1 : 0;
  }
  finished.rows = done;
  return finished;
}

}  // namespace encoderd::ctl
