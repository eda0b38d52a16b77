#include "client/cpp/encoderctl/resumable_output.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cpp/encoderctl/resume_mark.h"
#include "client/cpp/encoderctl/scales_file.h"

namespace encoderd::ctl {

absl::StatusOr<std::unique_ptr<ResumableOutput>> ResumableOutput::Open(
    OutputPlan plan,
    absl::FunctionRef<bool(const std::string& path)> is_input) {
  std::unique_ptr<ResumableOutput> output(new ResumableOutput(std::move(plan)));
  const absl::Status taken = output->TakeFiles(is_input);
  if (!taken.ok()) return taken;
  return output;
}

// Locks the files that go with the output, as it is: they may be the output
// of another run, or another name of this one's.
absl::Status ResumableOutput::TakeFiles(
    absl::FunctionRef<bool(const std::string& path)> is_input) {
  absl::Status status = lock_.Take(plan_.path);
  if (!status.ok()) return status;
  scales_path_ = ScalesPathOf(plan_.path);
  marks_path_ = ResumePathOf(plan_.path);
  for (const std::string& path : {scales_path_, marks_path_}) {
    if (!is_input(path)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ", which goes with --output, is also --input"));
  }
  status = CheckDistinct({plan_.path, scales_path_, marks_path_});
  if (status.ok()) status = marks_lock_.Take(marks_path_, Links::kRefuse);
  if (status.ok() && plan_.has_scales) {
    status = scales_lock_.Take(scales_path_, Links::kRefuse);
  }
  if (status.ok()) status = CheckMarksFile(marks_path_);
  if (status.ok() && plan_.has_scales) status = CheckScalesFile(scales_path_);
  return status;
}

bool ResumableOutput::empty() const {
  std::error_code none;
  return std::filesystem::file_size(plan_.path, none) == 0;
}

absl::StatusOr<FinishedRows> ResumableOutput::Resume(TextSource* source) {
  auto found = FindFinishedRows(
      {plan_.path, marks_path_, plan_.has_scales ? scales_path_ : "",
       plan_.work, plan_.layout, plan_.skips},
      source);
  if (found.ok()) done_ = found->rows;
  return found;
}

// The marks come first: they never count rows that others have taken the place
// of.
absl::Status ResumableOutput::Begin() {
  if (begun()) return absl::OkStatus();
  auto marks =
      RowFile::Open(marks_path_, kMarkLayout,
                    done_ > 0 ? done_ + kWorkMarks : 0, Links::kRefuse);
  if (!marks.ok()) return marks.status();
  marks_ = *std::move(marks);
  if (done_ == 0) {
    const absl::Status marked = marks_->Append(plan_.work);
    if (!marked.ok()) return marked;
  }
  if (plan_.has_scales) {
    auto scales =
        RowFile::Open(scales_path_, kScaleLayout, done_, Links::kRefuse);
    if (!scales.ok()) return scales.status();
    scales_ = *std::move(scales);
  } else if (done_ == 0) {
    RemoveOldScales(plan_.path, scales_path_);
  }
  auto rows = RowFile::Open(plan_.path, plan_.layout, done_, Links::kFollow);
  if (!rows.ok()) return rows.status();
  rows_ = *std::move(rows);
  return absl::OkStatus();
}

// The marks come last: the rows that they count are there.
absl::Status ResumableOutput::Append(const std::vector<OutputRow>& rows) {
  if (rows.empty()) return absl::OkStatus();
  std::string bytes;
  std::string scales;
  std::string marks;
  for (const OutputRow& row : rows) {
    const absl::string_view scale(reinterpret_cast<const char*>(&row.scale),
                                  plan_.has_scales ? sizeof(row.scale) : 0);
    bytes += row.bytes;
    scales.append(scale.data(), scale.size());
    absl::StrAppend(&marks, row.text_mark, MarkRow(row.bytes, scale));
  }
  absl::Status status = Begin();
  if (status.ok() && scales_ != nullptr) status = scales_->Append(scales);
  if (status.ok()) status = rows_->Append(bytes);
  if (status.ok()) status = marks_->Append(marks);
  if (status.ok()) done_ += static_cast<int64_t>(rows.size());
  return status;
}

absl::Status ResumableOutput::Close() {
  if (!begun()) return absl::OkStatus();
  absl::Status closed = rows_->Close();
  if (scales_ != nullptr) closed.Update(scales_->Close());
  if (!closed.ok()) return closed;
  std::error_code ignored;
  std::filesystem::remove(marks_path_, ignored);
  return absl::OkStatus();
}

}  // namespace encoderd::ctl
