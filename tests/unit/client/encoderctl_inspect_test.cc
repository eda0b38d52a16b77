// encoderctl inspect: figures and verdict as text, JSON and a picture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#include <stb/stb_image.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/heatmap.h"
#include "client/cpp/encoderctl/output_file.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/client/encoderctl_fixture.h"

namespace encoderd::ctl {
namespace {

using encoderd::testing::FakeEncoderService;
using encoderd::testing::FakeError;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class EncoderctlInspectTest : public EncoderctlTest {
 protected:
  int RunWith(const FakeEncoderService& service,
              std::vector<std::string> arguments) {
    arguments.push_back(absl::StrCat("--target=", service.target()));
    return RunBare(arguments);
  }
};

TEST_F(EncoderctlInspectTest, InspectsThePositionTable) {
  ASSERT_EQ(Run({"inspect"}), kExitOk) << err_;
  EXPECT_THAT(out_, HasSubstr("rows             0 to 7 of 8, 6 columns\n"));
  EXPECT_THAT(out_, HasSubstr("least 0.0000, mean 3.5000, most 7.0000\n"));
  EXPECT_THAT(out_, HasSubstr("       4        0.1250     0.0625\n"));
  EXPECT_THAT(out_,
              HasSubstr("WARNING: trained up to row 3, random from row 4 on: "
                        "before it mean centered cosine of neighboring rows "
                        "0.5000, threshold 0.1250\n"));
  EXPECT_EQ(Run({"inspect", "--first_row=8"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("ROWS_OUT_OF_RANGE"));
  EXPECT_EQ(Run({"inspect", "0"}), kExitUsage);
}

TEST_F(EncoderctlInspectTest, NamesAVerdictThatItDoesNotKnowByItsNumber) {
  service_.SetVerdict(v1::POSITION_VERDICT_UNSPECIFIED);
  ASSERT_EQ(Run({"inspect"}), kExitOk) << err_;
  EXPECT_THAT(out_, HasSubstr("\nundecided: too few rows\n"));
  ASSERT_EQ(Run({"inspect", "--json=-"}), kExitOk) << err_;
  EXPECT_THAT(out_, HasSubstr("\"verdict\":\"undecided\""));
  service_.SetVerdict(static_cast<v1::PositionVerdict>(17));
  ASSERT_EQ(Run({"inspect"}), kExitOk) << err_;
  EXPECT_THAT(out_, HasSubstr("\nunknown verdict 17: the server is newer than "
                              "this program\n"));
  ASSERT_EQ(Run({"inspect", "--json=-"}), kExitOk) << err_;
  EXPECT_THAT(out_, HasSubstr("\"verdict\":\"unknown verdict 17\""));
}

// The points of a picture that mark rows for padding.
int MarkedPoints(const std::string& png) {
  int width = 0, height = 0, channels = 0;
  const std::unique_ptr<unsigned char, decltype(&stbi_image_free)> rgb(
      stbi_load(png.c_str(), &width, &height, &channels, 3), &stbi_image_free);
  int points = 0;
  for (int i = 0; i < width * height; ++i) {
    const unsigned char* point = rgb.get() + ptrdiff_t{3} * i;
    points += Color{point[0], point[1], point[2]} == kMarkColor ? 1 : 0;
  }
  return points;
}

TEST_F(EncoderctlInspectTest, ThePictureMarksRowsForPadding) {
  const std::string png = folder_.Path("inspect.png");
  ASSERT_EQ(Run({"inspect", "--png=" + png}), kExitOk) << err_;
  // Two rows of 48 points, on an axis of the table and two of each map.
  EXPECT_EQ(MarkedPoints(png), 5 * 2 * 48 * 8);
  ASSERT_EQ(Run({"inspect", "--first_row=2", "--png=" + png}), kExitOk) << err_;
  EXPECT_EQ(MarkedPoints(png), 0);
}

TEST_F(EncoderctlInspectTest, WritesWhatItInspectedAsJsonAndAsAPicture) {
  const std::string json = folder_.Path("inspect.json");
  const std::string png = folder_.Path("inspect.png");
  ASSERT_EQ(Run({"inspect", "--first_row=2", "--row_count=3", "--json=" + json,
                 "--png=" + png}),
            kExitOk)
      << err_;
  EXPECT_THAT(Read(json),
              StartsWith("{\"model\":\"fake\",\"position_scheme\":"
                         "\"learned\",\"table_rows\":8,\"columns\":6,"
                         "\"first_row\":2,\"row_count\":3,\"verdict\":"
                         "\"partly trained\",\"verdict_cosine\":0.5,"
                         "\"threshold\":0.125,\"change_row\":4,"
                         "\"norms\":[2.0,3.0,4.0],\"profile\":[{"
                         "\"distance\":1,\"mean_cosine\":0.5,"
                         "\"mean_centered_cosine\":0.25}"));
  EXPECT_THAT(Read(png), StartsWith("\x89PNG\r\n"));
  ASSERT_EQ(Run({"inspect", "--json=-"}), kExitOk) << err_;
  EXPECT_THAT(out_, StartsWith("{\"model\":\"fake\""));
  EXPECT_EQ(Run({"inspect", "--png=/none/x.png"}), kExitFailed);
  EXPECT_EQ(err_,
            "encoderctl inspect: cannot write to /none/x.png: No such file or "
            "directory\n");
}

TEST_F(EncoderctlInspectTest, LeavesNoHalfOfAPicture) {
  const std::string png = folder_.Path("half.png");
  {
    const FileSizeLimit small(100);
    EXPECT_EQ(Run({"inspect", "--png=" + png}), kExitFailed);
  }
  EXPECT_THAT(err_, HasSubstr("cannot write to " + png + ": File too large"));
  EXPECT_FALSE(std::ifstream(png).good());
}

TEST_F(EncoderctlInspectTest, KeepsAnEarlierPictureThatItCannotReplace) {
  const std::string png = folder_.Path("kept.png");
  ASSERT_EQ(Run({"inspect", "--row_count=2", "--png=" + png}), kExitOk) << err_;
  const std::string before = Read(png);
  {
    const FileSizeLimit small(100);
    EXPECT_EQ(Run({"inspect", "--png=" + png}), kExitFailed);
  }
  EXPECT_THAT(err_, HasSubstr("cannot write to " + png + ": File too large"));
  EXPECT_TRUE(Read(png) == before);
  {
    OutputLock other;
    ASSERT_TRUE(other.Take(png).ok());
    EXPECT_EQ(Run({"inspect", "--png=" + png}), kExitFailed);
  }
  EXPECT_EQ(err_, "encoderctl inspect: " + png +
                      " is being written by another run; wait for it, or name "
                      "another file\n");
  EXPECT_TRUE(Read(png) == before);
  ASSERT_EQ(Run({"inspect", "--png=" + png}), kExitOk) << err_;
  EXPECT_GT(Read(png).size(), before.size());
  EXPECT_GT(MarkedPoints(png), 0);
  ASSERT_EQ(Run({"inspect", "--row_count=2", "--png=" + png}), kExitOk) << err_;
  EXPECT_TRUE(Read(png) == before);
}

// Its tables lack the last value.
class ShortTables : public FakeEncoderService {
 public:
  grpc::Status InspectPositions(
      grpc::ServerContext* context, const v1::InspectPositionsRequest* request,
      v1::InspectPositionsResponse* response) override {
    const grpc::Status status =
        FakeEncoderService::InspectPositions(context, request, response);
    std::string* values = response->mutable_values();
    if (!values->empty()) values->resize(values->size() - sizeof(float));
    return status;
  }
};

TEST_F(EncoderctlInspectTest, DrawsNoTableThatLacksAValue) {
  ShortTables service;
  const std::string png = folder_.Path("short.png");
  EXPECT_EQ(RunWith(service, {"inspect", "--png=" + png}), kExitFailed);
  EXPECT_EQ(err_,
            "encoderctl inspect: INTERNAL: the answer has 47 values and 64 "
            "cosines of 8 rows of 6 columns\n");
  EXPECT_FALSE(std::filesystem::exists(png));
}

TEST_F(EncoderctlInspectTest, DrawsNoTableOfAModelThatIsNotDescribed) {
  service_.RefuseModels(FakeError(grpc::StatusCode::INTERNAL,
                                  "device fault 4711", "DEVICE_FAULT", {}));
  const std::string png = folder_.Path("fault.png");
  EXPECT_EQ(Run({"inspect", "--png=" + png}), kExitFailed);
  EXPECT_EQ(err_,
            "encoderctl inspect: INTERNAL (DEVICE_FAULT): device fault 4711\n");
  EXPECT_FALSE(std::filesystem::exists(png));
}

TEST_F(EncoderctlInspectTest, RefusesFilesThatItCannotWriteBoth) {
  const std::string file = folder_.Path("same.png");
  const std::string other = absl::StrCat(folder_.Path("."), "/same.png");
  for (const std::string& json : {file, other}) {
    EXPECT_EQ(Run({"inspect", "--png=" + file, "--json=" + json}), kExitUsage);
    EXPECT_THAT(err_, HasSubstr("same.png; name two files"));
  }
  EXPECT_EQ(Read(file), "");
  EXPECT_EQ(Run({"inspect", "--png=-"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--png=-: a picture goes to a file"));
  EXPECT_EQ(Run({"inspect", "--png=p.JPG"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--png=p.JPG: only PNG is written, not .jpg"));
}

}  // namespace
}  // namespace encoderd::ctl
