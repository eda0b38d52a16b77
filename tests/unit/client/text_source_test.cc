// Texts from lines and from JSON lines: what is a text, and what is none.
#include "client/cpp/encoderctl/text_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <istream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/error.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class TextSourceTest : public ::testing::Test {
 protected:
  // Reads `content` to its end. A line that was refused is in texts_ as the
  // words about it.
  void Read(std::string content, InputFormat format) {
    in_ = std::istringstream(std::move(content));
    TextInput input;
    input.standard_input = &in_;
    input.format = format;
    input.note = [this](absl::string_view note) { notes_.emplace_back(note); };
    auto opened = TextSource::Open(std::move(input));
    ASSERT_TRUE(opened.ok()) << opened.status();
    source_ = *std::move(opened);
    std::string text;
    absl::Status refused;
    while (true) {
      const absl::StatusOr<bool> more = source_->Next(&text, &refused);
      ASSERT_TRUE(more.ok()) << more.status();
      if (!*more) break;
      if (!refused.ok()) {
        EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
        EXPECT_EQ(client::GetInputIndex(refused), texts_.size());
        EXPECT_THAT(text, IsEmpty());
        text = std::string(refused.message());
      }
      texts_.push_back(text);
    }
    EXPECT_EQ(source_->texts_read(), static_cast<int64_t>(texts_.size()));
  }

  std::istringstream in_;
  std::unique_ptr<TextSource> source_;
  std::vector<std::string> texts_;
  std::vector<std::string> notes_;
};

TEST_F(TextSourceTest, ReadsLinesWithAndWithoutTheirEnds) {
  Read("one\r\n\ntwo words\nlast", InputFormat::kAuto);
  EXPECT_THAT(texts_, ElementsAre("one", "", "two words", "last"));
  EXPECT_EQ(source_->NameOf(3), "standard input:4");
}

TEST_F(TextSourceTest, NotesTheFirstRowThatAStrayQuoteMayHaveSwallowed) {
  Read("id\ttext\n1\tone\n2\t\"two\n3\tthree\"\n4\t\"x\ny\"\n",
       InputFormat::kTsv);
  EXPECT_THAT(texts_, ElementsAre("one", "two\n3\tthree", "x\ny"));
  ASSERT_THAT(notes_, SizeIs(1));
  EXPECT_THAT(notes_[0],
              HasSubstr("standard input: row 2 is the first with a line break "
                        "inside quotes"));
  texts_.clear();
  notes_.clear();
  Read("text\n\"a,\"\"b\"\"\"\n\nc\n", InputFormat::kCsv);
  EXPECT_THAT(texts_, ElementsAre("a,\"b\"", "", "c"));
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(TextSourceTest, TheShareIsThatOfTheTextsThatAreTold) {
  TextInput input;
  input.arguments = {"a", "b", "c", "d"};
  const auto arguments = TextSource::Open(std::move(input));
  ASSERT_TRUE(arguments.ok());
  EXPECT_EQ((*arguments)->Share(1), 0.25);
  const TempFolder folder;
  folder.Write("in.txt", "a\nb\nc\nd\n");
  input = TextInput();
  input.file = folder.Path("in.txt");
  const auto file = TextSource::Open(std::move(input));
  ASSERT_TRUE(file.ok());
  std::string text;
  absl::Status refused;
  EXPECT_EQ((*file)->Share(0), 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(*(*file)->Next(&text, &refused));
  }
  EXPECT_EQ((*file)->Share(1), 0.25);
  EXPECT_EQ((*file)->Share(2), 0.5);
}

TEST_F(TextSourceTest, EmptyLinesAtTheEndAreNoTextsAndBlanksAreOne) {
  Read("one\n\n  \n\r\n\n", InputFormat::kLines);
  EXPECT_THAT(texts_, ElementsAre("one", "", "  "));
  texts_.clear();
  Read("\n\n", InputFormat::kAuto);
  EXPECT_THAT(texts_, IsEmpty());
}

TEST_F(TextSourceTest, AByteOrderMarkIsNoPartOfTheFirstText) {
  const std::string mark = "\xEF\xBB\xBF";
  Read(mark + "one\n" + mark + "two\n", InputFormat::kLines);
  EXPECT_THAT(texts_, ElementsAre("one", mark + "two"));
  texts_.clear();
  Read(mark + "\"one\"\n", InputFormat::kJsonl);
  EXPECT_THAT(texts_, ElementsAre("one"));
  texts_.clear();
  Read(mark, InputFormat::kLines);
  EXPECT_THAT(texts_, IsEmpty());
  Read(mark.substr(0, 2) + "\n", InputFormat::kLines);
  EXPECT_THAT(texts_, ElementsAre(mark.substr(0, 2)));
}

TEST_F(TextSourceTest, ANulInALineOrARowIsABadTextAndInJsonIsMeant) {
  const std::string nul(1, '\0');
  const std::string words =
      "; to convert texts separated by NULs: tr '\\0' '\\n'; UTF-16: iconv -f "
      "UTF-16LE -t UTF-8";
  Read("one\nt" + nul + "o\nthree\n", InputFormat::kLines);
  EXPECT_THAT(
      texts_,
      ElementsAre("one", "inputs[1] has a NUL at byte 1" + words, "three"));
  texts_.clear();
  Read("id,text\n1,one\n2,tw" + nul + "\n3,three\n", InputFormat::kCsv);
  EXPECT_THAT(
      texts_,
      ElementsAre("one", "inputs[1] has a NUL at byte 2" + words, "three"));
  texts_.clear();
  Read("\"a\\u0000b\"\n\"c\"" + nul + "\"d\"\n\"e\"" + nul + "\n",
       InputFormat::kJsonl);
  EXPECT_THAT(texts_, ElementsAre("a" + nul + "b",
                                  "inputs[1] has a NUL at byte 3" + words,
                                  "inputs[2] has a NUL at byte 3" + words));
  texts_.clear();
  Read("[\"a\\u0000b\"]", InputFormat::kJson);
  EXPECT_THAT(texts_, ElementsAre("a" + nul + "b"));
}

TEST_F(TextSourceTest, RefusesALineThatIsTooLongAndContinuesAfterIt) {
  for (const char* quote : {"", "\""}) {
    texts_.clear();
    const std::string endless(LineReader::kMaxLineBytes + 1, 'x');
    const std::string lines = absl::StrCat(quote, "ok", quote, "\n", endless,
                                           "\n", quote, "more", quote, "\n");
    Read(lines, *quote == 0 ? InputFormat::kLines : InputFormat::kJsonl);
    EXPECT_THAT(
        texts_,
        ElementsAre(
            "ok", "inputs[1] is a line of 16777217 bytes; the most is 16777216",
            "more"));
  }
}

TEST_F(TextSourceTest, ReadsStringsAndFieldsOfJsonLines) {
  Read(
      "\"one\"\r\n {\"id\": 7, \"text\": \"two\\nlines\"} \n\"\\ud83d\\ude00\"",
      InputFormat::kJsonl);
  EXPECT_THAT(texts_, ElementsAre("one", "two\nlines", "\xf0\x9f\x98\x80"));
}

TEST_F(TextSourceTest, SaysHowToReadAnArrayThatIsNamedAsLines) {
  const std::string hint =
      "; if the input is one JSON array: --input_format=json";
  for (const char* array : {"[\n\"one\"\n]\n", " [\"one\", \"two\"]\n"}) {
    texts_.clear();
    Read(array, InputFormat::kJsonl);
    EXPECT_THAT(texts_[0], EndsWith(hint));
  }
  texts_.clear();
  Read("\"one\"\n[]\n", InputFormat::kJsonl);
  EXPECT_THAT(texts_[1], Not(EndsWith(hint)));
}

TEST_F(TextSourceTest, BlankJsonLinesAtTheEndAreNoTexts) {
  Read("\"one\"\n\"two\"\n\n  \t\r\n\n ", InputFormat::kJsonl);
  EXPECT_THAT(texts_, ElementsAre("one", "two"));
}

TEST_F(TextSourceTest, ABlankJsonLineBeforeOthersIsRefusedUnderItsNumber) {
  Read("\n\"one\"\n\n \r\n\"two\"\n\n", InputFormat::kJsonl);
  EXPECT_THAT(texts_,
              ElementsAre("inputs[0] is a blank line before others", "one",
                          "inputs[2] is a blank line before others",
                          "inputs[3] is a blank line before others", "two"));
}

TEST_F(TextSourceTest, LooksPastAnyNumberOfBlankLines) {
  const std::string many(200000, '\n');
  for (const InputFormat format : {InputFormat::kLines, InputFormat::kJsonl}) {
    texts_.clear();
    Read("\"one\"\n" + many, format);
    EXPECT_THAT(texts_, SizeIs(1));
    texts_.clear();
    Read(many + "\"one\"\n" + many, format);
    EXPECT_THAT(texts_, SizeIs(many.size() + 1));
    EXPECT_THAT(texts_.back(), HasSubstr("one"));
  }
}

TEST_F(TextSourceTest, SaysWhatIsWrongWithAJsonLine) {
  Read(
      "\"half \\ud83d\"\n\"\\ude00\"\n{\"text\": surrogate}\n\"caf\xe9\"\n"
      "{\"words\": \"x\"}\n[1e999]\n",
      InputFormat::kJsonl);
  ASSERT_THAT(texts_, SizeIs(6));
  EXPECT_THAT(texts_[0],
              HasSubstr("inputs[0] has an unpaired surrogate, such as \\ud83d "
                        "alone, up to byte 13: a character above \\uffff takes "
                        "two"));
  EXPECT_THAT(texts_[1], HasSubstr("inputs[1] has an unpaired surrogate"));
  EXPECT_THAT(texts_[2], HasSubstr("inputs[2] is invalid JSON at byte 10"));
  EXPECT_EQ(texts_[3], "inputs[3] is not valid UTF-8 at byte 4");
  EXPECT_EQ(texts_[4],
            "inputs[4] is neither a JSON string nor an object with a string in "
            "\"text\"; strings are in: words (--field)");
  EXPECT_EQ(texts_[5], "inputs[5] has a number that no double can hold");
}

TEST_F(TextSourceTest, RefusesJsonThatIsDeepOrHasTheFieldTwice) {
  const auto nested = [](int levels) {
    return absl::StrCat("{\"x\": ", std::string(levels - 1, '['),
                        std::string(levels - 1, ']'), ", \"text\": \"one\"}\n");
  };
  Read(absl::StrCat(nested(64), nested(65),
                    std::string(LineReader::kMaxLineBytes, '['), "\n",
                    "{\"text\": \"a\", \"x\": \"b\", \"text\": \"c\"}\n",
                    "{\"text\": 1, \"text\": \"c\"}\n",
                    "{\"x\": {\"text\": \"a\"}, \"text\": \"b\", \"x\": 1}\n",
                    "[{\"text\": \"a\"}]\n{\"text\": [\"a\"]}\n"),
       InputFormat::kJsonl);
  ASSERT_THAT(texts_, SizeIs(8));
  EXPECT_EQ(texts_[0], "one");
  for (const int deep : {1, 2}) {
    EXPECT_THAT(texts_[deep], HasSubstr("more than 64 levels deep"));
  }
  EXPECT_EQ(texts_[3], "inputs[3] has \"text\" more than once");
  EXPECT_EQ(texts_[4], "inputs[4] has \"text\" more than once");
  EXPECT_EQ(texts_[5], "b");
  for (const int none : {6, 7}) {
    EXPECT_EQ(texts_[none],
              absl::StrCat("inputs[", none,
                           "] is neither a JSON string nor an object with a "
                           "string in \"text\""));
  }
}

TEST_F(TextSourceTest, StopsInALineThatNeverEnds) {
  for (const InputFormat format : {InputFormat::kLines, InputFormat::kJsonl}) {
    TextInput input;
    input.file = "/dev/zero";
    input.format = format;
    const auto source = TextSource::Open(std::move(input));
    ASSERT_TRUE(source.ok()) << source.status();
    int asked = 0;
    (*source)->StopWhen([&asked] { return ++asked > 300; });
    std::string text;
    absl::Status refused;
    EXPECT_TRUE(absl::IsCancelled((*source)->Next(&text, &refused).status()));
    EXPECT_EQ(asked, 301);
  }
}

TEST_F(TextSourceTest, NamesAnInputWhoseReadsFail) {
  struct Case {
    std::string before;  // what can be read
    int texts;           // of it
  };
  // Of the second, more bytes are wanted before it is looked at.
  for (const Case& x : {Case{"", 0}, Case{"\xff", 0}, Case{"one\ntwo", 1}}) {
    int ends[2] = {};
    ASSERT_EQ(pipe(ends), 0);
    const int folder = open("/", O_RDONLY | O_CLOEXEC);  // has no bytes
    TextInput input;
    input.standard_input = &in_;
    input.descriptor = ends[0];
    const auto source = TextSource::Open(std::move(input));
    ASSERT_TRUE(source.ok()) << source.status();
    bool written = x.before.empty();
    (*source)->StopWhen([&] {  // asked before each read
      if (written) {
        EXPECT_EQ(dup2(folder, ends[0]), ends[0]);
      } else {
        EXPECT_EQ(write(ends[1], x.before.data(), x.before.size()),
                  static_cast<ssize_t>(x.before.size()));
      }
      written = true;
      return false;
    });
    std::string text;
    absl::Status refused;
    for (int i = 0; i < x.texts; ++i) {
      EXPECT_THAT((*source)->Next(&text, &refused).status(), IsOk());
    }
    EXPECT_THAT((*source)->Next(&text, &refused).status(),
                IsError(absl::StatusCode::kDataLoss,
                        "cannot read standard input: Is a directory"))
        << x.before;
    for (const int descriptor : {ends[0], ends[1], folder}) close(descriptor);
  }
}

TEST_F(TextSourceTest, NamesAStreamWhoseReadsFail) {
  std::istream broken(nullptr);
  TextInput input;
  input.standard_input = &broken;
  const auto source = TextSource::Open(std::move(input));
  ASSERT_TRUE(source.ok()) << source.status();
  std::string text;
  absl::Status refused;
  EXPECT_EQ((*source)->Next(&text, &refused).status(),
            absl::DataLossError("cannot read standard input"));
}

TEST_F(TextSourceTest, ArgumentsArePlainTexts) {
  for (const InputFormat format : {InputFormat::kJsonl, InputFormat::kJson,
                                   InputFormat::kCsv, InputFormat::kTsv}) {
    TextInput input;
    input.arguments = {"{\"text\": 1}"};
    input.format = format;
    EXPECT_THAT(
        TextSource::Open(std::move(input)).status(),
        IsError(absl::StatusCode::kInvalidArgument,
                absl::StrCat("--input_format=", WordOf(format),
                             " is for --input and standard input; arguments "
                             "are plain texts")));
  }
}

TEST_F(TextSourceTest, TakesArgumentsOrAFileAndNotBoth) {
  TextInput input;
  input.arguments = {"one"};
  input.file = "in.txt";
  EXPECT_EQ(TextSource::Open(std::move(input)).status(),
            absl::InvalidArgumentError(
                "give texts as arguments or --input, not both"));
}

TEST_F(TextSourceTest, NamesTheFileThatItCannotOpen) {
  TextInput input;
  input.file = "/no/such/file";
  EXPECT_EQ(TextSource::Open(input).status().message(),
            "cannot read /no/such/file: No such file or directory");
  input.file = "/";
  EXPECT_EQ(TextSource::Open(input).status().message(),
            "/ is a folder; --input takes a file");
}

}  // namespace
}  // namespace encoderd::ctl
