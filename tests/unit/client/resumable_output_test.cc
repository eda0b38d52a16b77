// The files of a bulk run: opened, appended to, cut, resumed and closed.
#include "client/cpp/encoderctl/resumable_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/encoderctl/npy.h"
#include "client/cpp/encoderctl/resume_mark.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/read_all.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd::ctl {
namespace {

using ::testing::HasSubstr;

class ResumableOutputTest : public ::testing::Test {
 protected:
  ResumableOutputTest() { model_.set_fingerprint("one"); }

  // Rows of two bytes, each with a scale.
  OutputPlan Plan(const client::EmbedOptions& options = {}) const {
    return {Path(), {"|i1", 2, 1}, true, MarkWork(model_, options), false};
  }
  std::string Path(const std::string& ending = "") const {
    return folder_.Path("out.npy" + ending);
  }
  bool Exists(const std::string& ending) const {
    return std::filesystem::exists(Path(ending));
  }
  std::string Read(const std::string& ending = "") const {
    return ReadAll(Path(ending));
  }
  static absl::StatusOr<std::unique_ptr<ResumableOutput>> Open(
      OutputPlan plan) {
    return ResumableOutput::Open(std::move(plan),
                                 [](const std::string&) { return false; });
  }
  static std::unique_ptr<TextSource> Texts(std::vector<std::string> texts) {
    TextInput input;
    input.arguments = std::move(texts);
    return TextSource::Open(std::move(input)).value();
  }
  static OutputRow Row(const std::string& text, const std::string& bytes,
                       float scale) {
    return {MarkText(text, absl::OkStatus()), bytes, scale};
  }
  // A run that wrote the rows of "one" and "two" and then died.
  void Cut() const {
    const auto output = Open(Plan());
    ASSERT_THAT(output, IsOk());
    ASSERT_THAT(
        (*output)->Append({Row("one", "ab", 0.5f), Row("two", "cd", 0.25f)}),
        IsOk());
    EXPECT_EQ((*output)->done(), 2);
  }

  v1::Model model_;
  const TempFolder folder_;
};

std::string Bytes(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST_F(ResumableOutputTest, ARunThatWasCutIsResumedAfterItsRows) {
  Cut();
  // A row that no mark counts.
  std::ofstream(Path(), std::ios::binary | std::ios::app) << "xy";
  const auto output = Open(Plan());
  ASSERT_THAT(output, IsOk());
  EXPECT_TRUE((*output)->found());
  EXPECT_FALSE((*output)->empty());
  const auto source = Texts({"one", "two", "three"});
  const auto found = (*output)->Resume(source.get());
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->rows, 2);
  EXPECT_EQ((*output)->done(), 2);
  EXPECT_EQ(source->texts_read(), 2);
  EXPECT_FALSE((*output)->begun());
  ASSERT_THAT((*output)->Append({Row("three", "ef", 1.0f)}), IsOk());
  EXPECT_EQ((*output)->done(), 3);
  EXPECT_EQ(Read(), NpyHeader(3, 2, "|i1") + "abcdef");
  EXPECT_EQ(Read(".scales.npy"),
            NpyHeader(3, 1, "<f4") + Bytes({0.5f, 0.25f, 1.0f}));
  EXPECT_TRUE(Exists(".resume"));
  EXPECT_THAT((*output)->Close(), IsOk());
  EXPECT_FALSE(Exists(".resume"));
}

TEST_F(ResumableOutputTest, ARunThatWasCutAfterItsLastTextIsOnlyClosed) {
  Cut();
  const auto output = Open(Plan());
  ASSERT_THAT(output, IsOk());
  ASSERT_THAT((*output)->Resume(Texts({"one", "two"}).get()), IsOk());
  EXPECT_THAT((*output)->Begin(), IsOk());
  EXPECT_TRUE((*output)->begun());
  EXPECT_THAT((*output)->Close(), IsOk());
  EXPECT_EQ(Read(), NpyHeader(2, 2, "|i1") + "abcd");
  EXPECT_FALSE(Exists(".resume"));
}

TEST_F(ResumableOutputTest, RowsWhoseMarksCannotBeWrittenAreNotDone) {
  Cut();
  {
    const auto output = Open(Plan());
    ASSERT_THAT(output, IsOk());
    ASSERT_THAT((*output)->Resume(Texts({"one", "two"}).get()), IsOk());
    ASSERT_THAT((*output)->Begin(), IsOk());
    // Marks are longer than rows.
    const FileSizeLimit full(std::filesystem::file_size(Path(".resume")));
    EXPECT_THAT((*output)->Append({Row("three", "ef", 1.0f)}),
                IsError(absl::StatusCode::kDataLoss, Path(".resume")));
    EXPECT_EQ((*output)->done(), 2);
  }
  EXPECT_EQ(Read(), NpyHeader(3, 2, "|i1") + "abcdef");
  const auto output = Open(Plan());
  ASSERT_THAT(output, IsOk());
  const auto found = (*output)->Resume(Texts({"one", "two", "three"}).get());
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->rows, 2);
}

TEST_F(ResumableOutputTest, RowsOfOtherWorkOrOfAnotherLayoutAreNotResumed) {
  Cut();
  const std::string rows = Read();
  const std::string marks = Read(".resume");
  const auto refuses = [&](OutputPlan plan, const std::string& text,
                           const std::string& why) {
    const auto output = Open(std::move(plan));
    ASSERT_THAT(output, IsOk());
    const absl::Status refused =
        (*output)->Resume(Texts({text, "two"}).get()).status();
    EXPECT_THAT(refused, IsError(absl::StatusCode::kFailedPrecondition, why));
    EXPECT_THAT(refused.message(), HasSubstr("--resume=no discards"));
    EXPECT_EQ((*output)->done(), 0);
    EXPECT_FALSE((*output)->begun());
    EXPECT_EQ(Read(), rows);
    EXPECT_EQ(Read(".resume"), marks);
  };
  client::EmbedOptions options;
  options.dimensions = 1;
  refuses(Plan(options), "one", "the options changed since");
  refuses(Plan(), "other", "the text of argument 1 changed since");
  OutputPlan wider = Plan();
  wider.layout.columns = 3;
  refuses(wider, "one", "out.npy is damaged, or not what encoderctl wrote");
  model_.set_fingerprint("two");
  refuses(Plan(), "one", "the model changed since");
}

TEST_F(ResumableOutputTest, RowsThatAreNotResumedAreReplaced) {
  Cut();
  const auto output = Open(Plan());
  ASSERT_THAT(output, IsOk());
  ASSERT_THAT((*output)->Append({Row("new", "gh", 2.0f)}), IsOk());
  EXPECT_THAT((*output)->Close(), IsOk());
  EXPECT_EQ(Read(), NpyHeader(1, 2, "|i1") + "gh");
  EXPECT_EQ(Read(".scales.npy"), NpyHeader(1, 1, "<f4") + Bytes({2.0f}));
}

TEST_F(ResumableOutputTest, WhatWasThereStaysUntilThereIsARow) {
  for (const bool earlier : {false, true}) {
    if (earlier) folder_.Write("out.npy", "earlier");
    {
      const auto output = Open(Plan());
      ASSERT_THAT(output, IsOk());
      EXPECT_EQ((*output)->found(), earlier);
      EXPECT_EQ((*output)->empty(), !earlier);
      EXPECT_THAT((*output)->Append({}), IsOk());
      EXPECT_FALSE((*output)->begun());
      EXPECT_THAT((*output)->Close(), IsOk());
    }
    EXPECT_EQ(Exists(""), earlier);
    EXPECT_EQ(Read(), earlier ? "earlier" : "");
    EXPECT_FALSE(Exists(".resume"));
    EXPECT_FALSE(Exists(".scales.npy"));
  }
}

TEST_F(ResumableOutputTest, FilesOfOthersAreRefused) {
  const auto input = ResumableOutput::Open(
      Plan(),
      [this](const std::string& path) { return path == Path(".scales.npy"); });
  EXPECT_THAT(input,
              IsError(absl::StatusCode::kInvalidArgument,
                      Path(".scales.npy") + ", which goes with --output"));
  for (const std::string ending : {".resume", ".scales.npy"}) {
    folder_.Write("out.npy" + ending, "my notes");
    EXPECT_THAT(Open(Plan()),
                IsError(absl::StatusCode::kFailedPrecondition, Path(ending)));
    EXPECT_EQ(Read(ending), "my notes");
    std::filesystem::remove(Path(ending));
  }
  const auto first = Open(Plan());
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(Open(Plan()), IsError(absl::StatusCode::kAborted, Path()));
}

TEST_F(ResumableOutputTest, AnOutputThatLostItsNameKeepsItsMarks) {
  const auto output = Open(Plan());
  ASSERT_THAT(output, IsOk());
  ASSERT_THAT((*output)->Append({Row("one", "ab", 0.5f)}), IsOk());
  std::filesystem::remove(Path());
  EXPECT_THAT((*output)->Close(),
              IsError(absl::StatusCode::kDataLoss, "removed or replaced"));
  EXPECT_TRUE(Exists(".resume"));
}

}  // namespace
}  // namespace encoderd::ctl
