// Texts from CSV and from a JSON array: what is a record, and what is wrong.
#include "client/cpp/encoderctl/record_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/csv_reader.h"
#include "client/cpp/encoderctl/json_array_reader.h"
#include "client/cpp/encoderctl/text_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// The texts of `in`; of a record that gives none, "!" and why; at last,
// what ended it early, if anything did.
std::vector<std::string> ReadAll(RecordReader&& reader, LineReader* in) {
  std::vector<std::string> texts;
  const absl::Status begun = reader.Begin(in);
  if (!begun.ok()) return {absl::StrCat("begin: ", begun.message())};
  while (true) {
    std::string text;
    std::string wrong;
    const auto more = reader.Next(in, &text, &wrong);
    if (!more.ok()) {
      EXPECT_TRUE(absl::IsInvalidArgument(more.status())) << more.status();
      texts.push_back(absl::StrCat("end: ", more.status().message()));
      return texts;
    }
    if (!*more) return texts;
    texts.push_back(wrong.empty() ? text : absl::StrCat("!", wrong));
  }
}

std::vector<std::string> Read(RecordReader&& reader,
                              const std::string& content) {
  std::istringstream stream(content);
  LineReader in("input", stream, -1);
  return ReadAll(std::move(reader), &in);
}

std::vector<std::string> Csv(const std::string& content) {
  return Read(CsvReader("text"), content);
}

std::vector<std::string> JsonArray(const std::string& content) {
  return Read(JsonArrayReader("text"), content);
}

TEST(CsvReaderTest, ReadsTheColumnThatTheHeaderNames) {
  EXPECT_THAT(Csv("id,text\n1,one\n2,two words\n"),
              ElementsAre("one", "two words"));
  EXPECT_THAT(Csv("text\r\none\r\ntwo"), ElementsAre("one", "two"));
  EXPECT_THAT(Csv("\xEF\xBB\xBFtext,id\none,1\n"), ElementsAre("one"));
  EXPECT_THAT(Csv("\xEF\xBB\xBF\"text\",\"id\"\n\"one\",1\n"),
              ElementsAre("one"));
  EXPECT_THAT(Csv("\xEF\xBB\xBF\"id, old\",text\n1,one\n"), ElementsAre("one"));
  EXPECT_THAT(Csv("\xEF\xBB\xBF\n\ntext\none\n"), ElementsAre("one"));
  EXPECT_THAT(Csv("\"id\",\"text\"\n1,\"\"\n2,\n"), ElementsAre("", ""));
}

TEST(CsvReaderTest, ReadsQuotedFieldsAsTheStandardSays) {
  EXPECT_THAT(
      Csv("id,text\n1,\"a, b\"\n2,\"say \"\"hi\"\"\"\n3,\"x\r\ny\nz\"\r\n"
          "4,\"\"\"\"\n"),
      ElementsAre("a, b", "say \"hi\"", "x\r\ny\nz", "\""));
  // Not in the standard; Python and spreadsheets read it so.
  EXPECT_THAT(Csv("text\na 5\" disk\nx\ry\nlast\r"),
              ElementsAre("a 5\" disk", "x\ry", "last\r"));
}

TEST(CsvReaderTest, PassesOverBlankRowsOfSeveralColumns) {
  EXPECT_THAT(Csv("\n\ntext,id\n\none,1\n\r\n\ntwo,2\n\n"),
              ElementsAre("one", "two"));
  EXPECT_THAT(Csv(""), IsEmpty());
  EXPECT_THAT(Csv("text\n"), IsEmpty());
}

TEST(CsvReaderTest, ABlankRowOfOneColumnIsAnEmptyTextUnlessNoneFollows) {
  EXPECT_THAT(Csv("\ntext\n\none\n\r\n\ntwo\n\n\n"),
              ElementsAre("", "one", "", "", "two"));
}

TEST(CsvReaderTest, RefusesARowOfAnotherWidthAndContinuesAfterIt) {
  EXPECT_THAT(Csv("id,text\n1,one, and more\n2\n3,three\n"),
              ElementsAre("!has 3 fields; the first row has 2: quote a field "
                          "that holds a comma",
                          "!has 1 field; the first row has 2: add the missing "
                          "ones, or quote a field that holds a line break",
                          "three"));
  EXPECT_THAT(Csv("text\n\"one\" more\ntwo\n"),
              ElementsAre("!has text after a closing quote: double the quotes "
                          "inside a quoted field",
                          "two"));
}

TEST(CsvReaderTest, ACarriageReturnIsTextAfterAClosingQuoteToo) {
  EXPECT_THAT(Csv("text\n\"a\"\rb\nok\n\"a\"\r\r\n\"fine\"\r\n\"a\"\r"),
              ElementsAre(StartsWith("!has text after a closing quote"), "ok",
                          StartsWith("!has text after a closing quote"), "fine",
                          StartsWith("!has text after a closing quote")));
}

TEST(CsvReaderTest, RefusesARowOfMoreFieldsThanItKeeps) {
  const std::string most((1 << 16) - 1, ',');
  EXPECT_THAT(Csv(absl::StrCat("text", most, "\none", most, "\ntwo", most,
                               ",,\nthree", most, "\n")),
              ElementsAre("one", "!has more than 65536 fields", "three"));
  EXPECT_THAT(Csv(absl::StrCat("text", most, ",\n")),
              ElementsAre("begin: the first row has more than 65536 fields"));
}

TEST(CsvReaderTest, NamesTheColumnsWhereTheFieldIsNone) {
  EXPECT_THAT(
      Csv("id,body\n1,one\n"),
      ElementsAre("begin: the first row names no column \"text\"; "
                  "available: \"id\", \"body\"; name one of them with --field; "
                  "if these are texts, put a header before them"));
  EXPECT_THAT(Csv("id;text\n1;one\n"),
              ElementsAre(HasSubstr("separate columns by commas")));
  EXPECT_THAT(Csv("text,text\na,b\n"),
              ElementsAre(HasSubstr("more than one column \"text\"")));
}

TEST(CsvReaderTest, EndsAtAQuoteThatIsNotClosed) {
  EXPECT_THAT(Csv("text\none\n\"two\nthree\n"),
              ElementsAre("one",
                          "end: a quoted field has no end: close the "
                          "quote"));
  const std::string endless(RecordReader::kMaxTextBytes + 9, 'x');
  const auto texts = Csv(absl::StrCat("text\n\"", endless, "\"\n"));
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_THAT(texts[0], StartsWith("end: a quoted field has no end within"));
}

TEST(CsvReaderTest, RefusesARowThatIsTooLongAndContinuesAfterIt) {
  const std::string endless(RecordReader::kMaxTextBytes + 1, 'x');
  EXPECT_THAT(Csv(absl::StrCat("text\n", endless, "\ntwo\n")),
              ElementsAre("!has more than 16777216 bytes", "two"));
}

TEST(JsonArrayReaderTest, ReadsStringsAndFieldsOfObjects) {
  EXPECT_THAT(JsonArray("[\"one\", {\"text\": \"two, [words]\", \"n\": [1]},\n"
                        "\"\\\"three\\\"\\n\" ]\n"),
              ElementsAre("one", "two, [words]", "\"three\"\n"));
  EXPECT_THAT(JsonArray("\xEF\xBB\xBF[]"), IsEmpty());
  EXPECT_THAT(JsonArray(" \n"), IsEmpty());
}

TEST(JsonArrayReaderTest, RefusesAnElementWithoutATextAndContinuesAfterIt) {
  EXPECT_THAT(JsonArray("[12, null, {\"body\": \"x\"}, [\"y\"], nul, \"z\"]"),
              ElementsAre(StartsWith("!is neither a JSON string nor"),
                          StartsWith("!is neither a JSON string nor"),
                          HasSubstr("strings are in: body (--field)"),
                          StartsWith("!is neither a JSON string nor"),
                          StartsWith("!is invalid JSON"), "z"));
  const std::string endless(RecordReader::kMaxTextBytes, 'x');
  EXPECT_THAT(JsonArray(absl::StrCat("[\"", endless, "\", \"two\"]")),
              ElementsAre("!has more than 16777216 bytes", "two"));
}

TEST(JsonArrayReaderTest, SaysWhatTheInputIsInsteadOfAnArray) {
  for (const char* content : {"{\"text\": \"one\"}\n", "\"one\"\n", "one\n"}) {
    EXPECT_THAT(JsonArray(content),
                ElementsAre(HasSubstr("is not a JSON array, [...]: for a JSON "
                                      "value on each line use "
                                      "--input_format=jsonl")));
  }
}

TEST(JsonArrayReaderTest, NamesTheByteWhereTheArrayIsBroken) {
  EXPECT_THAT(JsonArray("[\"one\" \"two\"]"),
              ElementsAre("one",
                          "end: invalid JSON at byte 8: expected a comma "
                          "or the array's end, ]"));
  EXPECT_THAT(JsonArray("[\"one\""),
              ElementsAre("one", HasSubstr("expected a comma or")));
  EXPECT_THAT(JsonArray("[\"one"),
              ElementsAre(HasSubstr("expected the array's end")));
  EXPECT_THAT(JsonArray("[\"one\",]"),
              ElementsAre("one", HasSubstr("byte 8: expected a value")));
  EXPECT_THAT(JsonArray("[,]"), ElementsAre(HasSubstr("expected a value")));
  EXPECT_THAT(
      JsonArray("[\"one\"] x"),
      ElementsAre("one", HasSubstr("expected the end after the array")));
}

TEST(JsonArrayReaderTest, ANulIsNoEndOfTheInput) {
  const std::string nul(1, '\0');
  EXPECT_THAT(JsonArray("[\"one\"]" + nul + " more \"two\"]"),
              ElementsAre("one", HasSubstr("byte 8: expected the end after")));
  EXPECT_THAT(JsonArray(nul + nul),
              ElementsAre(HasSubstr("is not a JSON array")));
  EXPECT_THAT(JsonArray("[\"one\"" + nul + ", \"two\"]"),
              ElementsAre("one", HasSubstr("byte 7: expected a comma or")));
  EXPECT_THAT(JsonArray("[" + nul + ", \"two\"]"),
              ElementsAre("!is invalid JSON at byte 1", "two"));
}

// What `read` makes of a pipe into which one byte of `content` arrives at a
// time; behind the last, once, `end` is called with the pipe's two ends.
template <typename Read>
auto FromSlowPipe(const std::string& content,
                  const std::function<void(const int ends[2])>& end,
                  const Read& read) {
  int ends[2] = {};
  EXPECT_EQ(pipe(ends), 0);
  std::istringstream unused;
  LineReader in("input", unused, ends[0]);
  size_t at = 0;
  in.StopWhen([&] {  // asked before each read
    if (at < content.size()) {
      EXPECT_EQ(write(ends[1], &content[at], 1), 1);
    } else if (at == content.size()) {
      end(ends);
    }
    ++at;
    return false;
  });
  auto found = read(&in);
  close(ends[0]);
  return found;
}

std::vector<std::string> ReadFromSlowPipe(RecordReader&& reader,
                                          const std::string& content) {
  return FromSlowPipe(
      content, [](const int ends[2]) { close(ends[1]); },
      [&](LineReader* in) { return ReadAll(std::move(reader), in); });
}

TEST(RecordReaderTest, KnowsWhetherARecordIsThereToItsEnd) {
  const JsonArrayReader json("text");
  for (const char* whole :
       {"\"a\"", ", \"a\"", "{\"text\": \"a\"},", "[1],", "12,", "null]"}) {
    EXPECT_TRUE(json.HoldsRecord(whole)) << whole;
  }
  for (const char* part : {"", " ", ",", "]", ", ]", "\"a", "\"a\\\"",
                           "{\"text\": \"a\"", "12", ",\n{"}) {
    EXPECT_FALSE(json.HoldsRecord(part)) << part;
  }
  const CsvReader csv("text");
  for (const char* whole :
       {"a\n", "\r\n\na,b\r\n", "\"a\nb\"\n", "\"a\"\"\"\n"}) {
    EXPECT_TRUE(csv.HoldsRecord(whole)) << whole;
  }
  for (const char* part : {"", "\n", "a", "\"a\n", "\"a\"\"\n", "\"a\nb\""}) {
    EXPECT_FALSE(csv.HoldsRecord(part)) << part;
  }
}

TEST(RecordReaderTest, AByteOrderMarkMayArriveInPieces) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_THAT(ReadFromSlowPipe(JsonArrayReader("text"), mark + "[\"one\"]"),
              ElementsAre("one"));
  EXPECT_THAT(ReadFromSlowPipe(CsvReader("text"), mark + "\"text\"\none\n"),
              ElementsAre("one"));
  // Its beginning alone is none.
  EXPECT_THAT(ReadFromSlowPipe(JsonArrayReader("text"), mark.substr(0, 2)),
              ElementsAre(HasSubstr("is not a JSON array")));
  EXPECT_THAT(ReadFromSlowPipe(CsvReader("text"), mark), IsEmpty());
}

// What ends the reading of an input whose reads fail after `content`.
absl::Status ReadUntilItFails(RecordReader&& reader,
                              const std::string& content) {
  const auto fail = [](const int ends[2]) {
    const int folder = open("/", O_RDONLY | O_CLOEXEC);  // has no bytes
    EXPECT_EQ(dup2(folder, ends[0]), ends[0]);
    close(folder);
    close(ends[1]);
  };
  return FromSlowPipe(content, fail, [&](LineReader* in) {
    absl::Status status = reader.Begin(in);
    for (bool more = status.ok(); more;) {
      std::string text;
      std::string wrong;
      const auto read = reader.Next(in, &text, &wrong);
      status = read.status();
      more = read.ok() && *read;
    }
    return status;
  });
}

TEST(RecordReaderTest, AReadThatFailsIsNotTheEndOfTheInput) {
  const auto fails =
      IsError(absl::StatusCode::kDataLoss, "cannot read input: Is a directory");
  for (const char* content :
       {"", " ", "[", "[\"on", "[\"one\"", "[\"one\",", "[\"one\"]"}) {
    EXPECT_THAT(ReadUntilItFails(JsonArrayReader("text"), content), fails)
        << content;
  }
  for (const char* content : {"", "te", "text\n", "text\none\ntw"}) {
    EXPECT_THAT(ReadUntilItFails(CsvReader("text"), content), fails) << content;
  }
}

class RecordSourceTest : public ::testing::Test {
 protected:
  std::unique_ptr<TextSource> Open(const std::string& name,
                                   const std::string& content) {
    folder_.Write(name, content);
    TextInput input;
    input.file = folder_.Path(name);
    auto source = TextSource::Open(std::move(input));
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }
  static std::string Next(TextSource* source) {
    std::string text;
    absl::Status refused;
    const auto more = source->Next(&text, &refused);
    EXPECT_TRUE(more.ok()) << more.status();
    return !more.ok() || !*more ? "(none)" : text;
  }

  const TempFolder folder_;
};

TEST_F(RecordSourceTest, GivesEveryRecordOnce) {
  const std::pair<const char*, const char*> kFiles[] = {
      {"in.csv", "id,text\n1,\"a\nb\"\n2,two\n3,three\n"},
      {"in.json", "[\"a\\nb\", \"two\",\n {\"text\": \"three\"}]\n"}};
  for (const auto& [name, content] : kFiles) {
    const auto source = Open(name, content);
    for (const char* text : {"a\nb", "two", "three", "(none)", "(none)"}) {
      EXPECT_EQ(Next(source.get()), text) << name;
    }
    EXPECT_EQ(source->texts_read(), 3) << name;
  }
}

TEST_F(RecordSourceTest, NamesRowsAndElements) {
  EXPECT_EQ(Open("in.csv", "text\na\n")->NameOf(0),
            folder_.Path("in.csv") + ": row 1");
  EXPECT_EQ(Open("in.json", "[\"a\"]")->NameOf(11),
            folder_.Path("in.json") + ": element 12");
}

TEST_F(RecordSourceTest, RefusesFilesOfOtherFormatsByName) {
  for (const char* name : {"x.parquet", "x.xlsx", "x.GZ", "x.csv.gz",
                           "x.tsv.gz", "x.npy", "x.zip"}) {
    folder_.Write(name, "bytes");
    TextInput input;
    input.file = folder_.Path(name);
    const absl::Status refused = TextSource::Open(input).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << name;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("--input does not read "));
    input.format = InputFormat::kLines;
    EXPECT_TRUE(TextSource::Open(input).ok()) << name;
  }
}

}  // namespace
}  // namespace encoderd::ctl
