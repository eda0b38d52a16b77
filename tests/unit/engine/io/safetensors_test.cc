#include "engine/io/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

// What Open says of a file of this header and data.
absl::Status Try(const std::string& header, const std::string& data) {
  const TempFolder folder;
  folder.Write("m", SafetensorsBytes(header, data));
  return SafetensorsFile::Open(folder.path(), "m").status();
}

// A header of one tensor "t".
std::string One(const std::string& dtype, const std::string& shape,
                const std::string& offsets) {
  return absl::StrCat("{\"t\":{\"dtype\":\"", dtype, "\",\"shape\":", shape,
                      ",\"data_offsets\":", offsets, "}}");
}

TEST(SafetensorsTest, ReadsTensorsOfEveryWeightDtype) {
  const TempFolder folder;
  folder.Write(
      "m", SafetensorsBytes({FloatTensor("f", {2, 2}, {1, -2, 0.5, 1e-40f}),
                             {"h", "F16", {3}, {0, 0x3c, 0, '\xc0', 1, 0}},
                             {"b", "BF16", {2}, {'\x80', '\x3f', 0, '\xc0'}}}));
  const auto file = SafetensorsFile::Open(folder.path(), "m");
  ASSERT_THAT(file, IsOk());
  ASSERT_EQ(file->tensors().size(), 3u);
  EXPECT_EQ(file->Find("none"), nullptr);
  float values[4];
  ASSERT_THAT(file->ReadFloats(*file->Find("f"), values), IsOk());
  EXPECT_EQ(values[1], -2.0f);
  EXPECT_EQ(values[3], 1e-40f);
  ASSERT_THAT(file->ReadFloats(*file->Find("h"), values), IsOk());
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], -2.0f);
  EXPECT_EQ(values[2], std::ldexp(1.0f, -24));
  ASSERT_THAT(file->ReadFloats(*file->Find("b"), values), IsOk());
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], -2.0f);
}

TEST(SafetensorsTest, ReadsALongHalfTensorInSeveralChunks) {
  const TempFolder folder;
  constexpr int64_t kValues = (1 << 20) + 3;
  std::string bytes;
  for (int64_t i = 0; i < kValues; ++i) {
    bytes.push_back(0);
    bytes.push_back(i % 3 == 0 ? '\x3c' : '\x40');  // 1 or 2
  }
  folder.Write("m", SafetensorsBytes({{"h", "F16", {kValues}, bytes}}));
  const auto file = SafetensorsFile::Open(folder.path(), "m");
  ASSERT_THAT(file, IsOk());
  std::vector<float> values(kValues);
  ASSERT_THAT(file->ReadFloats(*file->Find("h"), values.data()), IsOk());
  for (int64_t i = 0; i < kValues; ++i) {
    ASSERT_EQ(values[i], i % 3 == 0 ? 1.0f : 2.0f) << i;
  }
}

TEST(SafetensorsTest, ReadsALongFloatTensorInSeveralChunks) {
  const TempFolder folder;
  constexpr int64_t kValues = (1 << 18) + 3;
  std::vector<float> stored(kValues);
  for (int64_t i = 0; i < kValues; ++i) stored[i] = static_cast<float>(i);
  const auto bytes = [&stored] {
    return std::string(reinterpret_cast<const char*>(stored.data()),
                       kValues * sizeof(float));
  };
  folder.Write("m", SafetensorsBytes({{"w", "F32", {kValues}, bytes()}}));
  stored[kValues - 2] = std::numeric_limits<float>::infinity();
  folder.Write("bad", SafetensorsBytes({{"w", "F32", {kValues}, bytes()}}));
  std::vector<float> values(kValues);
  const auto file = SafetensorsFile::Open(folder.path(), "m");
  ASSERT_THAT(file, IsOk());
  ASSERT_THAT(file->ReadFloats(*file->Find("w"), values.data()), IsOk());
  for (int64_t i = 0; i < kValues; ++i) ASSERT_EQ(values[i], i);
  const auto bad = SafetensorsFile::Open(folder.path(), "bad");
  ASSERT_THAT(bad, IsOk());
  EXPECT_THAT(bad->ReadFloats(*bad->Find("w"), values.data()),
              IsError(kDataLoss, "inf at index 262145;"));
}

TEST(SafetensorsTest, AcceptsScalarsEmptyTensorsMetadataAndPadding) {
  EXPECT_THAT(Try(One("F32", "[]", "[0,4]"), "1234"), IsOk());
  EXPECT_THAT(Try(One("F32", "[0,7]", "[0,0]"), ""), IsOk());
  EXPECT_THAT(Try("{\"__metadata__\":{\"format\":\"pt\"}}   ", ""), IsOk());
  EXPECT_THAT(Try("{}", ""), IsOk());
}

TEST(SafetensorsTest, AcceptsTensorsInAnyOrderOfTheHeader) {
  EXPECT_THAT(Try(R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                  R"("a":{"data_offsets":[0,1],"shape":[1],"dtype":"U8"}})",
                  "123"),
              IsOk());
}

TEST(SafetensorsTest, RefusesAFileWithoutALength) {
  const TempFolder folder;
  folder.Write("m", "1234567");
  EXPECT_THAT(SafetensorsFile::Open(folder.path(), "m"),
              IsError(kDataLoss, "m has 7 bytes"));
}

TEST(SafetensorsTest, RefusesAHeaderLongerThanTheFile) {
  const TempFolder folder;
  folder.Write("m", std::string("\x03\0\0\0\0\0\0\0{}", 10));
  EXPECT_THAT(SafetensorsFile::Open(folder.path(), "m"),
              IsError(kDataLoss, "claims 3 bytes; the file has 10"));
}

TEST(SafetensorsTest, RefusesAHeaderLengthThatWraps) {
  const TempFolder folder;
  folder.Write("m", std::string(8, '\xff') + "{}");
  EXPECT_THAT(SafetensorsFile::Open(folder.path(), "m"),
              IsError(kDataLoss, "claims 18446744073709551615 bytes"));
}

TEST(SafetensorsTest, RefusesAHeaderOverSixteenMebibytes) {
  std::string header = "{}";
  header.resize(kMaxSafetensorsHeaderBytes, ' ');
  EXPECT_THAT(Try(header, ""), IsOk());
  header.push_back(' ');
  EXPECT_THAT(Try(header, ""), IsError(kDataLoss, "at most 16777216"));
}

TEST(SafetensorsTest, RefusesAHeaderThatIsNoObject) {
  EXPECT_THAT(Try("", ""), IsError(kDataLoss, "does not start with '{'"));
  EXPECT_THAT(Try("[]", ""), IsError(kDataLoss, "does not start with '{'"));
  EXPECT_THAT(Try(" {}", ""), IsError(kDataLoss, "does not start with '{'"));
  EXPECT_THAT(Try("{", ""), IsError(kDataLoss, "not JSON"));
  EXPECT_THAT(Try("{}{}", ""), IsError(kDataLoss, "not JSON"));
}

TEST(SafetensorsTest, RefusesAByteOrderMark) {
  EXPECT_THAT(Try("\xEF\xBB\xBF{}", ""),
              IsError(kDataLoss, "does not start with '{'"));
}

TEST(SafetensorsTest, RefusesDuplicateKeys) {
  const std::string t =
      R"("t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_THAT(Try("{" + t + "," + t + "}", "1"),
              IsError(kDataLoss, "has the key 't' twice"));
  EXPECT_THAT(Try(R"({"__metadata__":{},"__metadata__":{}})", ""),
              IsError(kDataLoss, "'__metadata__' twice"));
  EXPECT_THAT(Try(R"({"__metadata__":{"a":"1","a":"1"}})", ""),
              IsError(kDataLoss, "'a' twice"));
  EXPECT_THAT(Try(R"({"t":{"dtype":"U8","dtype":"U8","shape":[1],)"
                  R"("data_offsets":[0,1]}})",
                  "1"),
              IsError(kDataLoss, "has dtype twice"));
}

TEST(SafetensorsTest, RefusesShapeAndOffsetsThatDoNotAgree) {
  EXPECT_THAT(Try(One("F32", "[2]", "[0,4]"), "1234"),
              IsError(kDataLoss, "shape [2] of F32, which does not fill"));
  EXPECT_THAT(Try(One("F32", "[1]", "[4,0]"), "1234"),
              IsError(kDataLoss, "does not fill its data_offsets [4,0]"));
  EXPECT_THAT(Try(One("F4", "[3]", "[0,1]"), "1"),
              IsError(kDataLoss, "does not fill"));
}

TEST(SafetensorsTest, RefusesAShapeWhoseProductWraps) {
  // As uint64 this product is 4.
  EXPECT_THAT(
      Try(One("U8", "[4194305,4194305,211106198978564]", "[0,4]"), "1234"),
      IsError(kDataLoss, "does not fill"));
  EXPECT_THAT(Try(One("F64", "[2305843009213693952]", "[0,0]"), ""),
              IsError(kDataLoss, "does not fill"));
}

TEST(SafetensorsTest, RefusesADtypeThatIsNotKnown) {
  EXPECT_THAT(Try(One("F31", "[1]", "[0,4]"), "1234"),
              IsError(kDataLoss, "dtype 'F31', which is unknown"));
  EXPECT_THAT(Try(One("f32", "[1]", "[0,4]"), "1234"),
              IsError(kDataLoss, "dtype 'f32', which is unknown"));
}

TEST(SafetensorsTest, RefusesAHoleBetweenTensors) {
  EXPECT_THAT(Try(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                  R"("b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                  "123"),
              IsError(kDataLoss, "'b' begins at byte 2"));
  EXPECT_THAT(Try(One("U8", "[1]", "[1,2]"), "12"),
              IsError(kDataLoss, "'t' begins at byte 1"));
}

TEST(SafetensorsTest, RefusesTensorsThatOverlap) {
  EXPECT_THAT(Try(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                  R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                  "123"),
              IsError(kDataLoss, "'b' begins at byte 1"));
  EXPECT_THAT(Try(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                  R"("b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
                  "12"),
              IsError(kDataLoss, "'b' begins at byte 0"));
}

TEST(SafetensorsTest, RefusesATailBehindTheTensors) {
  EXPECT_THAT(Try(One("U8", "[1]", "[0,1]"), "1PK"),
              IsError(kDataLoss, "describes 1 bytes of data; the file has 3"));
}

TEST(SafetensorsTest, RefusesAFileThatEndsBeforeItsTensors) {
  EXPECT_THAT(Try(One("U8", "[3]", "[0,3]"), "12"),
              IsError(kDataLoss,
                      "describes 3 bytes of data; the file has 2: the "
                      "download is incomplete; fetch the model again"));
}

TEST(SafetensorsTest, RefusesNumbersThatAreNotUnsignedIntegers) {
  for (const char* shape :
       {"[-1]", "[1.0]", "[1e0]", "[\"1\"]", "[null]", "[true]", "[[1]]",
        "[{}]", "1", "{}", "[9223372036854775808]", "[18446744073709551616]"}) {
    EXPECT_THAT(Try(One("U8", shape, "[0,1]"), "1"), IsError(kDataLoss, "m: "))
        << shape;
  }
  for (const char* offsets : {"[0]", "[]", "[0,1,1]", "[0,-1]", "[0.0,1]"}) {
    EXPECT_THAT(Try(One("U8", "[1]", offsets), "1"), IsError(kDataLoss, "m: "))
        << offsets;
  }
}

TEST(SafetensorsTest, RefusesARankOverEight) {
  EXPECT_THAT(Try(One("U8", "[1,1,1,1,1,1,1,1]", "[0,1]"), "1"), IsOk());
  EXPECT_THAT(Try(One("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), "1"),
              IsError(kDataLoss, "rank over 8"));
}

TEST(SafetensorsTest, RefusesMembersThatAreMissingOrUnknown) {
  EXPECT_THAT(Try(R"({"t":{"dtype":"U8","shape":[1]}})", "1"),
              IsError(kDataLoss, "lacks dtype, shape or data_offsets"));
  EXPECT_THAT(Try(R"({"t":{}})", ""), IsError(kDataLoss, "lacks"));
  EXPECT_THAT(Try(R"({"t":{"x":1}})", ""),
              IsError(kDataLoss, "unknown member 'x'"));
  EXPECT_THAT(Try(R"({"t":1})", ""), IsError(kDataLoss, "a number"));
  EXPECT_THAT(Try(R"({"__metadata__":{"a":1}})", ""),
              IsError(kDataLoss, "a number"));
  EXPECT_THAT(Try(R"({"__metadata__":{"a":{}}})", ""),
              IsError(kDataLoss, "an object"));
}

TEST(SafetensorsTest, RefusesDepthWithoutBuildingIt) {
  EXPECT_THAT(Try("{\"t\":" + std::string(1 << 20, '['), ""),
              IsError(kDataLoss, "an array where no value is allowed"));
}

TEST(SafetensorsTest, RefusesMillionsOfTensors) {
  std::string header = "{";
  for (int i = 0; i <= kMaxSafetensorsTensors; ++i) {
    absl::StrAppend(&header, i == 0 ? "" : ",", "\"", i,
                    R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})");
  }
  EXPECT_THAT(Try(header + "}", ""),
              IsError(kDataLoss, "more than 65536 tensors"));
}

TEST(SafetensorsTest, OtherDtypesAreRefusedOnlyWhenReadAsWeights) {
  const TempFolder folder;
  folder.Write("m", SafetensorsBytes({{"i", "I64", {1}, "12345678"}}));
  const auto file = SafetensorsFile::Open(folder.path(), "m");
  ASSERT_THAT(file, IsOk());
  float value;
  EXPECT_THAT(file->ReadFloats(*file->Find("i"), &value),
              IsError(absl::StatusCode::kUnimplemented, "dtype I64"));
  char bytes[8];
  EXPECT_THAT(file->ReadBytes(*file->Find("i"), 0, bytes, 8), IsOk());
  EXPECT_THAT(file->ReadBytes(*file->Find("i"), 4, bytes, 8),
              IsError(absl::StatusCode::kInternal, "which has 8"));
}

TEST(SafetensorsTest, ReadsHalvesAsTheyAre) {
  const TempFolder folder;
  folder.Write("m", SafetensorsBytes({{"h", "F16", {2}, "\x01\x02\x03\x84"},
                                      {"b", "BF16", {1}, "\x80\x3f"},
                                      FloatTensor("f", {1}, {1})}));
  const auto file = SafetensorsFile::Open(folder.path(), "m");
  ASSERT_THAT(file, IsOk());
  uint16_t bits[2];
  ASSERT_THAT(file->ReadHalves(*file->Find("h"), bits), IsOk());
  EXPECT_EQ(bits[0], 0x0201);
  EXPECT_EQ(bits[1], 0x8403);
  ASSERT_THAT(file->ReadHalves(*file->Find("b"), bits), IsOk());
  EXPECT_EQ(bits[0], 0x3f80);
  EXPECT_THAT(file->ReadHalves(*file->Find("f"), bits),
              IsError(absl::StatusCode::kInternal, "of F32"));
}

TEST(SafetensorsTest, RefusesHalvesThatAreNotFinite) {
  const TempFolder folder;
  folder.Write("m", SafetensorsBytes({{"h", "F16", {2}, {0, 0, 0, '\xfc'}},
                                      {"b", "BF16", {1}, "\xc0\x7f"}}));
  const auto file = SafetensorsFile::Open(folder.path(), "m");
  ASSERT_THAT(file, IsOk());
  uint16_t bits[2];
  EXPECT_THAT(file->ReadHalves(*file->Find("h"), bits),
              IsError(kDataLoss, "'h' has the value -inf at index 1"));
  EXPECT_THAT(file->ReadHalves(*file->Find("b"), bits),
              IsError(kDataLoss, "'b' has the value nan at index 0"));
}

TEST(SafetensorsTest, RefusesWeightsThatAreNotFinite) {
  const TempFolder folder;
  folder.Write("m", SafetensorsBytes({FloatTensor("n", {3}, {1, 2, NAN}),
                                      FloatTensor("i", {2}, {1, -INFINITY}),
                                      {"h", "F16", {1}, {0, '\x7c'}}}));
  const auto file = SafetensorsFile::Open(folder.path(), "m");
  ASSERT_THAT(file, IsOk());
  float values[3];
  EXPECT_THAT(file->ReadFloats(*file->Find("n"), values),
              IsError(kDataLoss, "tensor 'n' has the value nan at index 2"));
  EXPECT_THAT(file->ReadFloats(*file->Find("i"), values),
              IsError(kDataLoss, "'i' has the value -inf at index 1"));
  EXPECT_THAT(file->ReadFloats(*file->Find("h"), values),
              IsError(kDataLoss, "'h' has the value inf at index 0"));
}

TEST(SafetensorsTest, AFileCutAfterItWasOpenedIsAnErrorAndNoSignal) {
  const TempFolder folder;
  folder.Write("m", SafetensorsBytes({FloatTensor(
                        "t", {100000}, std::vector<float>(100000, 1.0f))}));
  const auto file = SafetensorsFile::Open(folder.path(), "m");
  ASSERT_THAT(file, IsOk());
  ASSERT_EQ(::truncate(folder.Path("m").c_str(), 5000), 0);
  std::vector<float> values(100000);
  EXPECT_THAT(file->ReadFloats(*file->Find("t"), values.data()),
              IsError(kDataLoss, "ends at byte 5000"));
}

}  // namespace
}  // namespace encoderd
