#include "engine/io/json.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

TEST(JsonTest, ReadsNestedValues) {
  const absl::StatusOr<Json> json =
      ParseJson(R"({"a":[1,-2,3.5,"x",null,{"b":true}],"c":{}})", "f");
  ASSERT_THAT(json, IsOk());
  EXPECT_EQ(json->dump(), R"({"a":[1,-2,3.5,"x",null,{"b":true}],"c":{}})");
}

TEST(JsonTest, RefusesAKeyTwiceWhereverItStands) {
  EXPECT_THAT(ParseJson(R"({"a":1,"a":1})", "f"),
              IsError(kDataLoss, "f has the key 'a' twice"));
  EXPECT_THAT(ParseJson(R"([{"b":{"a":1,"c":2,"\u0061":1}}])", "f"),
              IsError(kDataLoss, "'a' twice"));
}

TEST(JsonTest, RefusesDepthOverTheLimit) {
  const JsonLimits limits = {.max_bytes = 100, .max_depth = 3};
  EXPECT_THAT(ParseJson("[[[1]]]", "f", limits), IsOk());
  EXPECT_THAT(ParseJson("[[[[1]]]]", "f", limits),
              IsError(kDataLoss, "nested deeper than 3"));
  EXPECT_THAT(ParseJson(std::string(1 << 20, '['), "f"),
              IsError(kDataLoss, "nested deeper than 32"));
}

TEST(JsonTest, RefusesSizeOverTheLimit) {
  EXPECT_THAT(ParseJson("[1,2,3]", "f", {.max_bytes = 6}),
              IsError(kDataLoss, "f has 7 bytes; at most 6"));
}

TEST(JsonTest, RefusesWhatIsNotStrictJson) {
  for (const char* text :
       {"", " ", "{} x", "{}{}", "{\"a\":1,}", "[1,]", "{'a':1}", "// c\n1",
        "nul", "NaN", "01", "\"\x80\"", "{\"a\":\"\xC3\"}", "1e999"}) {
    EXPECT_THAT(ParseJson(text, "f"), IsError(kDataLoss, "f is not JSON"))
        << text;
  }
}

TEST(JsonTest, SaysWhereItIsBrokenWithoutTheNamesOfALibrary) {
  EXPECT_THAT(ParseJson("{\"a\":}", "f"),
              IsError(kDataLoss,
                      "f is not JSON near byte 6: parse error at line 1, "
                      "column 6: syntax error"));
}

TEST(JsonTest, RefusesAByteOrderMark) {
  EXPECT_THAT(ParseJson("\xEF\xBB\xBF{}", "f"),
              IsError(kDataLoss, "byte order mark"));
}

TEST(JsonTest, ReadsAFileThatHoldsAnObjectAndNoOther) {
  const TempFolder folder;
  folder.Write("a.json", R"({"x":1})");
  folder.Write("b.json", "[1]");
  EXPECT_THAT(ReadJsonObject(folder.path(), "a.json"), IsOk());
  EXPECT_THAT(ReadJsonObject(folder.path(), "b.json"),
              IsError(kDataLoss, "b.json holds an array; expected an object"));
  EXPECT_THAT(ReadJsonObject(folder.path(), "c.json"),
              IsError(absl::StatusCode::kNotFound, "c.json"));
  EXPECT_EQ(*ReadOptionalJsonObject(folder.path(), "c.json"), Json::object());
  EXPECT_EQ(*ReadOptionalJsonObject(folder.path(), "a.json"),
            *ReadJsonObject(folder.path(), "a.json"));
  EXPECT_EQ(ReadOptionalJsonObject(folder.path(), "b.json").status(),
            ReadJsonObject(folder.path(), "b.json").status());
}

class JsonFieldsTest : public testing::Test {
 protected:
  const Json json_ = ParseJson(
                         R"({"one":1,"minus":-1,"half":0.5,"float":1.0,
                             "huge":18446744073709551615,"yes":true,
                             "text":"x","nothing":null,"list":[1]})",
                         "f")
                         .value();
  const JsonFields fields_{json_, "f"};
};

TEST_F(JsonFieldsTest, ReadsWholeNumbersWithinTheirLimits) {
  EXPECT_EQ(fields_.Int("one", 1, 1).value(), 1);
  EXPECT_EQ(fields_.Int("minus", -5, 5).value(), -1);
  EXPECT_EQ(fields_.Int("absent", 0, 9, 7).value(), 7);
  EXPECT_EQ(fields_.Int("nothing", 0, 9, 7).value(), 7);
}

TEST_F(JsonFieldsTest, NamesKeyValueAndLimitOfAWrongNumber) {
  EXPECT_THAT(
      fields_.Int("one", 2, 5),
      IsError(kDataLoss, "f: one is 1; expected a whole number from 2 to 5"));
  EXPECT_THAT(fields_.Int("absent", 0, 1),
              IsError(kDataLoss, "f: absent is missing"));
  for (const char* key :
       {"minus", "half", "float", "huge", "yes", "text", "list"}) {
    EXPECT_THAT(fields_.Int(key, 0, std::numeric_limits<int64_t>::max()),
                IsError(kDataLoss, "expected a whole number"))
        << key;
  }
}

TEST_F(JsonFieldsTest, ReadsOtherTypesAndRefusesMixedOnes) {
  EXPECT_EQ(fields_.Number("half", 0, 1).value(), 0.5);
  EXPECT_EQ(fields_.Number("one", 0, 1).value(), 1.0);
  EXPECT_THAT(fields_.Number("half", 1, 2), IsError(kDataLoss, "half is 0.5"));
  EXPECT_THAT(fields_.Number("text", 0, 1), IsError(kDataLoss, "text is 'x'"));
  EXPECT_TRUE(fields_.Bool("yes").value());
  EXPECT_THAT(fields_.Bool("one"),
              IsError(kDataLoss, "expected true or false"));
  EXPECT_EQ(fields_.String("text").value(), "x");
  EXPECT_EQ(fields_.String("absent", "y").value(), "y");
  EXPECT_THAT(fields_.String("list"), IsError(kDataLoss, "expected a string"));
}

}  // namespace
}  // namespace encoderd
