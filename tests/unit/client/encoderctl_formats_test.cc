// What encoderctl reads and writes by the names of files.
#include <unistd.h>

#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/cpp/encoderctl/input_kind.h"
#include "gmock/gmock.h"
#include "tests/unit/client/encoderctl_fixture.h"

namespace encoderd::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(EncoderctlTest, ACompressedFilesHintCarriesTheFormatInside) {
  for (const auto& [name, hint] :
       std::vector<std::pair<std::string, std::string>>{
           {"in.jsonl.gz",
            "gzip -dc FILE | encoderctl ... "
            "--input_format=jsonl\n"},
           {"in.CSV.BZ2",
            "bzip2 -dc FILE | encoderctl ... "
            "--input_format=csv\n"},
           {"in.json.zst",
            "zstd -dc FILE | encoderctl ... "
            "--input_format=json\n"},
           {"in.gz",
            "--input_format=lines (or jsonl, csv, tsv, json: what FILE "
            "holds)\n"}}) {
    EXPECT_EQ(Run({"embed", "--input", File(name, "")}), kExitUsage);
    EXPECT_THAT(err_, HasSubstr(hint)) << name;
  }
}

TEST_F(EncoderctlTest, RefusesACompressedInputUnderAnyName) {
  const std::string utf16("a\0b\0\n\0", 6);
  EXPECT_EQ(Run({"embed"}, utf16), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("iconv -f UTF-16LE -t UTF-8"));
  const std::string gzip("\x1f\x8b\x08\x00\x00", 5);
  for (const std::string name : {"in.txt", "in.jsonl", "in.csv", "in.json"}) {
    EXPECT_EQ(Run({"embed", "--input", File(name, gzip)}), kExitUsage);
    EXPECT_THAT(err_, HasSubstr(absl::StrCat(name, ", a compressed file: ")));
  }
  EXPECT_EQ(Run({"embed"}, gzip), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("standard input, a compressed file: decompress "
                              "it into a pipe: gzip -dc FILE | "));
  EXPECT_EQ(service_.embed_calls(), 0);
}

TEST_F(EncoderctlTest, LeavesNoScalesNextToRowsThatHaveNone) {
  const std::string npy = folder_.Path("rows.npy");
  ASSERT_EQ(Run({"embed", "one", "two", "--encoding=int8", "--output", npy}),
            kExitOk)
      << err_;
  ASSERT_FALSE(Read(npy + ".scales.npy").empty());
  ASSERT_EQ(Run({"encode", "one", "two", "--output", npy}), kExitOk) << err_;
  EXPECT_TRUE(Read(npy + ".scales.npy").empty());
}

TEST_F(EncoderctlTest, TheSizeOfCallsIsThatOfTheFlag) {
  const std::string texts = "1\n2\n3\n4\n5\n6\n7\n8\n";
  ASSERT_EQ(Run({"encode", "--in_flight=1"}, texts), kExitOk) << err_;
  EXPECT_EQ(service_.last_encode().inputs_size(), 4);
  ASSERT_EQ(Run({"encode", "--in_flight=1", "--batch_size=8"}, texts), kExitOk)
      << err_;
  EXPECT_EQ(service_.last_encode().inputs_size(), 8);
}

TEST_F(EncoderctlTest, RefusesFilesWithoutTextByHowTheyBegin) {
  for (const auto& [begin, what] :
       std::vector<std::pair<std::string, std::string>>{
           {"BZh91AY&SY\x01", "a compressed file"},
           {"PAR1\x15\x04", "a Parquet file"},
           {std::string("ARROW1\0\0\xff", 9), "an Arrow file"},
           {"%PDF-1.7\n", "a PDF"}}) {
    EXPECT_EQ(Run({"embed"}, begin), kExitFailed);
    EXPECT_THAT(err_, HasSubstr(absl::StrCat("standard input, ", what)));
  }
  EXPECT_EQ(service_.embed_calls(), 0);
}

TEST_F(EncoderctlTest, ReadsTextThatBeginsWithTheLettersOfSuchAFile) {
  for (const char* text : {"PAR1 is a gene", "BZhang wrote this", "BZh9 is old",
                           "ARROW1", "%PDF-files", "PK zip", "B", "PAR1"}) {
    EXPECT_EQ(Run({"tokenize", "--format=jsonl"}, absl::StrCat(text, "\n")),
              kExitOk)
        << err_;
  }
}

TEST_F(EncoderctlTest, RefusesWideEncodingsWithAndWithoutAMark) {
  using namespace std::string_literals;
  for (const auto& [name, bytes] :
       std::vector<std::pair<std::string, std::string>>{
           {"UTF-16", "\xff\xfe\x61\0\x0a\0"s},
           {"UTF-16", "\xfe\xff\0\x61\0\x0a"s},
           {"UTF-16", "\xff\xfe"s},
           {"UTF-32", "\xff\xfe\0\0\x61\0\0\0"s},
           {"UTF-32", "\0\0\xfe\xff\0\0\0\x61"s},
           {"UTF-16LE", "\x61\0\x0a\0"s},
           {"UTF-16LE", "\x2e\x4e \0\x61\x5f\x0a\0"s},
           {"UTF-16BE", "\x04\x3f\x04\x40\0\x0a"s},
           {"UTF-16LE", "l\0e\0t\0t\0e\0r\0s\0.\0"s},
           {"UTF-16BE", "\0\x61\0\x0a"s},
           {"UTF-32LE", "\x61\0\0\0\x0a\0\0\0"s},
           {"UTF-32BE", "\0\0\0\x61\0\0\0\x0a"s}}) {
    const std::string hint =
        absl::StrCat(" is ", name.substr(0, 6),
                     "; convert it, such as with iconv -f ", name, " -t UTF-8");
    for (const std::string file : {"in.txt", "in.jsonl", "in.csv", "in.json"}) {
      EXPECT_EQ(Run({"embed", "--on_error=skip", "--output",
                     folder_.Path("out.npy"), "--input", File(file, bytes)}),
                kExitUsage);
      EXPECT_THAT(err_, HasSubstr(file + hint));
    }
    EXPECT_EQ(Run({"embed", "--on_error=skip"}, bytes), kExitFailed);
    EXPECT_THAT(err_, HasSubstr("standard input" + hint));
  }
  EXPECT_EQ(service_.embed_calls(), 0);
}

TEST_F(EncoderctlTest, TextsSeparatedByNulsAreNotCalledUtf16) {
  using namespace std::string_literals;
  for (const std::string& texts :
       {"a\0b\0"s, "a\0bc\0"s, "a\0bcd\0e\0\n"s, "one\0three\0"s}) {
    EXPECT_EQ(Run({"embed"}, texts), kExitFailed);
    EXPECT_THAT(err_, HasSubstr("has a NUL at byte "));
    EXPECT_THAT(err_, HasSubstr("texts separated by NULs: tr '\\0' '\\n'"));
  }
}

TEST_F(EncoderctlTest, ReadsTabsByNameAndByFlag) {
  const std::string tsv = "id\ttext\n1\tone, two\n2\t\"a\tb\"\n";
  ASSERT_EQ(Run({"tokenize", "--input", File("in.TSV", tsv)}), kExitOk) << err_;
  EXPECT_EQ(out_, "[CLS] one, two [SEP]\n[CLS] a\\x09b [SEP]\n");
  ASSERT_EQ(Run({"tokenize", "--input_format=tsv"}, tsv), kExitOk) << err_;
  EXPECT_EQ(Run({"tokenize", "--input_format=csv"}, tsv), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--input_format=tsv reads tabs\n"));
  EXPECT_EQ(Run({"tokenize", "--input_format=tsv"}, "id,text\n1,one\n"),
            kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--input_format=csv reads commas\n"));
  EXPECT_EQ(Run({"tokenize", "--input_format=tsv"}, "id\ttext\n1\ta\tb\n"),
            kExitFailed);
  EXPECT_THAT(err_, HasSubstr("quote a field that holds a tab"));
}

TEST_F(EncoderctlTest, KnowsAMarkOfUtf16ThatArrivesInPieces) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::thread writer([&ends] {
    EXPECT_EQ(write(ends[1], "\xff", 1), 1);
    absl::SleepFor(absl::Milliseconds(50));
    EXPECT_EQ(write(ends[1], "\xfe", 1), 1);
    close(ends[1]);
  });
  std::istringstream unused;
  std::ostringstream out, err;
  Environment environment{unused, out, err};
  environment.in_descriptor = ends[0];
  EXPECT_EQ(
      RunEncoderctl({"embed", "--target", service_.target()}, environment),
      kExitFailed);
  EXPECT_THAT(err.str(), HasSubstr("standard input is UTF-16; "));
  writer.join();
  close(ends[0]);
}

TEST_F(EncoderctlTest, RefusesLinesThatEndInCarriageReturnsAlone) {
  const std::string hint =
      " ends its lines in CR alone; convert it, such as with tr '\\r' '\\n'";
  for (const char* lines : {"one\rtwo\r", "one\rtwo\rthree"}) {
    EXPECT_EQ(Run({"embed", "--on_error=skip"}, lines), kExitFailed);
    EXPECT_THAT(err_, HasSubstr("standard input" + hint));
  }
  EXPECT_EQ(Run({"embed", "--input", File("in.jsonl", "\"a\"\r\"b\"\r")}),
            kExitFailed);
  EXPECT_THAT(err_, HasSubstr("in.jsonl" + hint));
  EXPECT_EQ(service_.embed_calls(), 0);
  for (const char* lines : {"one\r\ntwo\r", "one\rtwo", "a\rb\rc\n", "one\r"}) {
    EXPECT_EQ(Run({"embed"}, lines), kExitOk) << err_;
  }
  EXPECT_EQ(Run({"embed"}, std::string((16 << 20) + 1, 'x')), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("inputs[0] is a line of 16777217 bytes; "));
}

TEST_F(EncoderctlTest, NotesOnceThatLinesLookLikeJson) {
  const std::string json = "{\"text\": 1}\n{\"text\": 2}\n";
  const std::string note =
      "encoderctl tokenize: note: standard input looks like JSON and is read "
      "as lines, a text each; "
      "--input_format=jsonl or json reads the JSON, --input_format=lines omits "
      "this note\n";
  ASSERT_EQ(Run({"tokenize"}, json), kExitOk) << err_;
  EXPECT_EQ(err_, note);
  ASSERT_EQ(Run({"tokenize", "--input_format=lines"}, json), kExitOk);
  EXPECT_THAT(err_, IsEmpty());
  ASSERT_EQ(Run({"tokenize"}, "prose\n" + json), kExitOk);
  EXPECT_THAT(err_, IsEmpty());
  ASSERT_EQ(Run({"tokenize", "--input", File("in.log", json)}), kExitOk);
  EXPECT_THAT(err_, HasSubstr("in.log looks like JSON"));
}

TEST_F(EncoderctlTest, TheEndingOfTheOutputSaysHowEveryCommandWrites) {
  const std::string npy = "\x93NUMPY";
  for (const std::string command : {"embed", "encode", "similarity"}) {
    for (const char* name : {"out.npy", "OUT.NPY"}) {
      const std::string out = folder_.Path(name);
      ASSERT_EQ(Run({command, "one", "two", "--output", out}), kExitOk) << err_;
      EXPECT_THAT(Read(out), StartsWith(npy)) << command;
    }
  }
  for (const std::string command :
       {"embed", "encode", "similarity", "tokenize"}) {
    for (const char* name : {"out.jsonl", "out.NDJSON"}) {
      const std::string out = folder_.Path(name);
      ASSERT_EQ(Run({command, "one", "two", "--output", out}), kExitOk) << err_;
      EXPECT_THAT(Read(out), StartsWith("{\"index\":0,")) << command;
    }
  }
  const std::string out = folder_.Path("models.jsonl");
  ASSERT_EQ(Run({"models", "--output", out}), kExitOk) << err_;
  EXPECT_THAT(Read(out), StartsWith("{\"name\":\"fake\""));
  const std::string bench = folder_.Path("bench.json");
  ASSERT_EQ(Run({"bench", "--words=3", "--count=1", "--warm_up=0s",
                 "--duration=10m", "--output", bench}),
            kExitOk)
      << err_;
  EXPECT_THAT(Read(bench), StartsWith("{\"model\":\"fake\""));
}

TEST_F(EncoderctlTest, RefusesAnOutputThatItCannotWriteByItsName) {
  const auto refuse = [this](std::vector<std::string> command,
                             const std::string& name) {
    const std::string out = folder_.Path(name);
    command.insert(command.end(), {"--output", out});
    EXPECT_EQ(Run(command), kExitUsage) << name;
    EXPECT_EQ(Read(out), "") << name;
  };
  for (const char* name : {"x.csv", "x.npz", "x.parquet", "x.json", "x.PKL"}) {
    refuse({"embed", "one"}, name);
  }
  EXPECT_THAT(err_, HasSubstr("x.PKL: .pkl cannot be written; available: .npy, "
                              ".jsonl, .ndjson, and text under another "
                              "ending\n"));
  refuse({"tokenize", "one"}, "x.npy");
  EXPECT_THAT(err_, HasSubstr(".npy cannot be written; available: .jsonl, "));
  refuse({"models"}, "x.json");
  refuse({"embed", "--format=text", "one"}, "x.npy");
  EXPECT_THAT(err_, HasSubstr("takes no --format=text: name a file with "
                              "another ending"));
  refuse({"embed", "--format=npy", "one"}, "x.jsonl");
  const std::string csv = folder_.Path("x.csv");
  ASSERT_EQ(Run({"embed", "--format=text", "one", "--output", csv}), kExitOk);
  ASSERT_EQ(Run({"tokenize", "one", "--output", folder_.Path("x.txt")}),
            kExitOk);
  EXPECT_EQ(Read(folder_.Path("x.txt")), "[CLS] one [SEP]\n");
}

TEST_F(EncoderctlTest, SimilarityLeavesAnOutputAloneWithoutTwoTexts) {
  for (const char* name : {"out.txt", "out.npy", "out.jsonl"}) {
    const std::string out = File(name, "of an earlier run\n");
    EXPECT_EQ(Run({"similarity", "--output", out}, ""), kExitFailed);
    EXPECT_THAT(err_, HasSubstr("there are no texts to work on"));
    EXPECT_EQ(Read(out), "of an earlier run\n") << name;
    EXPECT_EQ(Run({"similarity", "--output", out}, "one\n"), kExitFailed);
    EXPECT_EQ(err_,
              "encoderctl similarity: there is one text; give at least two\n");
    EXPECT_EQ(Read(out), "of an earlier run\n") << name;
  }
}

TEST_F(EncoderctlTest, SaysHowToReadTheBytesOfAnEncoding) {
  ASSERT_EQ(Run({"embed", "--help"}), kExitOk);
  const std::string help = absl::StrJoin(
      absl::StrSplit(out_, absl::ByAnyChar(" \n"), absl::SkipEmpty()), " ");
  EXPECT_THAT(help, HasSubstr("a value is (byte + 1) x scale of int8, (byte - "
                              "127) x scale of uint8"));
}

TEST_F(EncoderctlTest, NotesThatLinesLookLikeCsv) {
  const std::string csv = "id,text\n1,one\n";
  ASSERT_EQ(Run({"tokenize"}, csv), kExitOk) << err_;
  EXPECT_EQ(err_,
            "encoderctl tokenize: note: standard input looks like CSV and is "
            "read as lines, a text "
            "each; --input_format=csv reads the column \"text\", "
            "--input_format=lines omits this note\n");
  for (const char* format : {"--input_format=lines", "--input_format=csv"}) {
    ASSERT_EQ(Run({"tokenize", format}, csv), kExitOk);
    EXPECT_THAT(err_, IsEmpty());
  }
  ASSERT_EQ(Run({"tokenize"}, "id\ttext\n1\tone\n"), kExitOk) << err_;
  EXPECT_THAT(err_, HasSubstr("looks like TSV and is read as lines, a text "
                              "each; --input_format=tsv reads"));
}

// Old Macs ended lines so, and some exports mix them.
TEST_F(EncoderctlTest, NotesTheFirstTextWithACrInside) {
  const std::string words =
      " is the first with a CR inside; if a CR alone ends lines, they are read "
      "as one: convert them, such as with tr '\\r' '\\n'\n";
  const std::string lines = File("in.txt", "one\r\ntwo\rthree\nfour\rfive\n");
  ASSERT_EQ(Run({"embed", "--input", lines}), kExitOk) << err_;
  EXPECT_EQ(err_, absl::StrCat("encoderctl embed: note: ", lines, ":2", words));
  const std::string csv = File("in.csv", "text\none\rtwo\r\n\"a\rb\"\n");
  ASSERT_EQ(Run({"embed", "--input", csv}), kExitOk) << err_;
  EXPECT_EQ(err_,
            absl::StrCat("encoderctl embed: note: ", csv, ": row 1", words));
  const std::string old = File("old.csv", "id,text\r1,one\r");
  EXPECT_NE(Run({"embed", "--input", old}), kExitOk);
  EXPECT_THAT(err_, HasSubstr("the first row holds a CR without a LF; if lines "
                              "end so, convert them"));
}

TEST_F(EncoderctlTest, MessagesDoNotControlTheTerminal) {
  const std::string csv = File("in.csv", "id,te\x1b[31m\xe9xt\xc2\x9b\n1,2\n");
  EXPECT_NE(Run({"embed", "--input", csv}), kExitOk);
  EXPECT_THAT(
      err_, HasSubstr("available: \"id\", \"te\\x1b[31m\\xe9xt\\xc2\\x9b\"; "));
  EXPECT_EQ(RunBare({"em\x07"
                     "bed"}),
            kExitUsage);
  EXPECT_THAT(err_, HasSubstr("unknown command \"em\\x07bed\""));
}

TEST_F(EncoderctlTest, DoesNotGuessTheFormatOfATemporaryFile) {
  EXPECT_EQ(Run({"embed", "one", "--output", folder_.Path("out.npy.tmp")}),
            kExitUsage);
  EXPECT_THAT(err_, HasSubstr("out.npy.tmp does not end in .npy: add "
                              "--format=npy or --format=text"));
  EXPECT_EQ(Run({"embed", "one", "--format=npy", "--output",
                 folder_.Path("out.npy.tmp")}),
            kExitOk)
      << err_;
}

TEST(InputKindTest, TellsTheHeaderOfACsvFromProse) {
  for (const char* header : {"id,text", "\"id\",\"text\"", "text,label"}) {
    EXPECT_TRUE(LooksLikeTable(header, "text", ',')) << header;
  }
  for (const char* prose : {"text", "one,two", "text, or so", "a text,b", ""}) {
    EXPECT_FALSE(LooksLikeTable(prose, "text", ',')) << prose;
  }
}

TEST(InputKindTest, TellsJsonFromProse) {
  for (const char* line : {"{\"text\":", " [\"a\", ", "[{\"a\":", "[", "{",
                           "\"a string\"", "[1, 2]", "{}"}) {
    EXPECT_TRUE(LooksLikeJson(line)) << line;
  }
  for (const char* line : {"", "prose", "42", "true", "[INFO] started",
                           "{braces} in prose", "\"Quoted,\" she said."}) {
    EXPECT_FALSE(LooksLikeJson(line)) << line;
  }
}

TEST_F(EncoderctlTest, NamesAHundredSkippedTextsAndCountsTheOthers) {
  std::string lines = "one\n";
  for (int i = 0; i < 150; ++i) lines += "\n";
  for (const char* output : {"skips.npy", "skips.jsonl"}) {
    EXPECT_EQ(
        Run({"embed", "--on_error=skip", "--output", folder_.Path(output)},
            lines + "two\n"),
        kExitOk);
    EXPECT_THAT(err_, HasSubstr("input:101: skipped: "));
    EXPECT_THAT(err_, Not(HasSubstr("input:102: skipped: ")));
    EXPECT_THAT(err_, HasSubstr("further skipped texts are only counted"));
    EXPECT_THAT(err_, HasSubstr("150 of 152 texts were skipped"));
  }
}

}  // namespace
}  // namespace encoderd::ctl
