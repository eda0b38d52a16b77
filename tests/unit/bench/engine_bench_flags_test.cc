#include "tests/bench/engine_bench_flags.h"

#include <gmock/gmock.h>

#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Refusal(const std::string& argument) {
  const absl::Status status = ParseEngineBenchFlags({argument}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << argument;
  return std::string(status.message());
}

TEST(EngineBenchFlagsTest, TakesEveryFlag) {
  const EngineBenchFlags flags =
      ParseEngineBenchFlags({"--model=a=b", "--device=cuda:1", "--dtype=fp16",
                             "--products=fp8", "--tuning_folder=f",
                             "--ids=file", "--threads=3",
                             "--max_batch_tokens=512", "--repeats=2",
                             "--tokens=64", "--peak_tflops=1.5", "--ops",
                             "--cuda_graphs=false", "--pooling=cls"})
          .value();
  EXPECT_EQ(flags.model, "a=b");
  EXPECT_EQ(flags.device, "cuda:1");
  EXPECT_EQ(flags.dtype, "fp16");
  EXPECT_EQ(flags.products, "fp8");
  EXPECT_EQ(flags.tuning_folder, "f");
  EXPECT_EQ(flags.ids, "file");
  EXPECT_EQ(flags.threads, 3);
  EXPECT_EQ(flags.max_batch_tokens, 512);
  EXPECT_EQ(flags.repeats, 2);
  EXPECT_EQ(flags.tokens, 64);
  EXPECT_EQ(flags.peak_tflops, 1.5);
  EXPECT_EQ(flags.pooling, Pooling::kCls);
  EXPECT_TRUE(flags.ops);
  EXPECT_FALSE(flags.cuda_graphs);
  EXPECT_FALSE(flags.help);
}

TEST(EngineBenchFlagsTest, NamesTheNumberThatItDoesNotTake) {
  for (const char* argument :
       {"--threads=x", "--threads=-1", "--threads=2000",
        "--threads=", "--threads=99999999999", "--repeats=0", "--repeats=1.5",
        "--tokens=0", "--tokens=9999999999", "--max_batch_tokens=-1"}) {
    EXPECT_THAT(Refusal(argument),
                AllOf(StartsWith(argument), HasSubstr("a whole number from ")));
  }
  for (const char* argument :
       {"--peak_tflops=fast", "--peak_tflops=-1", "--peak_tflops=nan"})
    EXPECT_THAT(Refusal(argument), EndsWith(": it takes a number from 0"));
}

TEST(EngineBenchFlagsTest, NamesTheWordThatItDoesNotTake) {
  for (const char* argument : {"--ops=yes", "--cuda_graphs=0"})
    EXPECT_THAT(Refusal(argument), EndsWith(": it takes true or false"));
  EXPECT_EQ(Refusal("--pooling=first"),
            "--pooling=first: it takes the name of a pooling, such as cls");
  for (const char* argument : {"--ids=", "--model=", "--device="})
    EXPECT_THAT(Refusal(argument), EndsWith(": it takes a name"));
  EXPECT_EQ(Refusal("--ids"), "--ids takes a value: --ids=...");
  EXPECT_TRUE(ParseEngineBenchFlags({"--tuning_folder="}).ok());
}

TEST(EngineBenchFlagsTest, NamesAnArgumentThatItDoesNotKnow) {
  for (const char* argument : {"--thread=1", "threads=1", "-h", "--", ""}) {
    EXPECT_EQ(Refusal(argument), std::string("unknown argument ") + argument +
                                     "; --help lists all");
  }
}

TEST(EngineBenchFlagsTest, HelpNamesEveryFlag) {
  EXPECT_TRUE(ParseEngineBenchFlags({"--help"}).value().help);
  for (const char* flag :
       {"--model=", "--device=", "--dtype=", "--products=", "--threads=",
        "--max_batch_tokens=", "--repeats=", "--tokens=", "--tuning_folder=",
        "--cuda_graphs=", "--pooling=", "--peak_tflops=", "--ops ", "--ids="})
    EXPECT_THAT(std::string(kEngineBenchUsage), HasSubstr(flag));
}

class ReadIdsTest : public ::testing::Test {
 protected:
  std::string RefusalOf(const std::string& content) {
    folder_.Write("ids", content);
    const absl::Status status = ReadIds(folder_.Path("ids")).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    const std::string message(status.message());
    EXPECT_THAT(message, StartsWith(folder_.Path("ids")));
    return message.substr(folder_.Path("ids").size());
  }

  const TempFolder folder_;
};

TEST_F(ReadIdsTest, TakesASequenceFromEachLine) {
  folder_.Write("ids", "1 2  3\r\n40\n5 6");
  const auto sequences = ReadIds(folder_.Path("ids")).value();
  ASSERT_EQ(sequences.size(), 3u);
  EXPECT_THAT(sequences[0].token_ids, ElementsAre(1, 2, 3));
  EXPECT_THAT(sequences[1].token_ids, ElementsAre(40));
  EXPECT_THAT(sequences[2].token_ids, ElementsAre(5, 6));
}

TEST_F(ReadIdsTest, NamesALineThatIsNotOnlyIds) {
  EXPECT_EQ(RefusalOf("1 2\n3 x4 5\n"), ", line 2: 'x4' is not an id");
  EXPECT_EQ(RefusalOf("1 2x\n"), ", line 1: '2x' is not an id");
  EXPECT_EQ(RefusalOf("1 3000000000\n"), ", line 1: '3000000000' is not an id");
  EXPECT_EQ(RefusalOf("1\n\n2\n"), ", line 2: it holds no ids");
}

TEST_F(ReadIdsTest, RefusesAFileWithoutSequences) {
  EXPECT_EQ(RefusalOf(""), " holds no sequences");
  EXPECT_THAT(std::string(ReadIds(folder_.Path("none")).status().message()),
              HasSubstr("none: No such file"));
  EXPECT_FALSE(ReadIds(folder_.path()).ok());  // a folder
  EXPECT_FALSE(ReadIds("").ok());
}

}  // namespace
}  // namespace encoderd
