// Files that can be opened but not read to their end, where only a digest is
// made of them.
#include <gtest/gtest.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/checkpoint/head_files.h"
#include "engine/checkpoint/model_config.h"
#include "engine/digest_thread.h"
#include "engine/io/manifest.h"
#include "engine/model.h"
#include "tests/support/faults.h"
#include "tests/support/patience.h"
#include "tests/support/random_checkpoint.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

// The disk may answer later.
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

// What `attempt` says when the last of its reads fails.
absl::Status FailLastRead(const std::function<absl::Status()>& attempt) {
  int reads = 0;
  {
    const ScopedFault count(FaultPoint::kReadAt,
                            {.after = INT_MAX, .may_miss = true});
    EXPECT_THAT(attempt(), IsOk());
    reads = count.meant();
  }
  const ScopedFault last(FaultPoint::kReadAt,
                         {.error = EIO, .after = reads - 1});
  return attempt();
}

TEST(LoadFaultsTest, AManifestsFileIsNamedWithItsLine) {
  // Of "abc" (FIPS 180-2, appendix B.1).
  constexpr char kAbc[] =
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  const TempFolder folder;
  folder.Write("a", "abc");
  folder.Write("b", "abc");
  folder.Write("SHA256SUMS",
               std::string(kAbc) + "  a\n" + std::string(kAbc) + "  b\n");
  EXPECT_THAT(
      FailLastRead([&] { return CheckManifest(folder.path()).status(); }),
      IsError(kUnavailable,
              "SHA256SUMS line 2: file 'b' cannot be read at byte 0: "
              "Input/output error"));
}

TEST(LoadFaultsTest, WeightsAfterPoolingAreNamed) {
  const TempFolder folder;
  const std::vector<TensorToWrite> tensors = {
      FloatTensor("linear.weight", {1, 2}, {3, 4})};
  folder.Write("2_Dense/model.safetensors", SafetensorsBytes(tensors));
  HeadModule dense;
  dense.kind = HeadModule::Kind::kDense;
  dense.folder = "2_Dense";
  dense.in = 2;
  dense.out = 1;
  dense.bias = false;
  EXPECT_THAT(
      FailLastRead([&] { return ReadHead(folder.path(), {dense}).status(); }),
      IsError(kUnavailable,
              "file '2_Dense/model.safetensors' cannot be read at byte 0: "
              "Input/output error"));
}

TEST(LoadFaultsTest, WeightsThatWereReadBeforeAreNamed) {
  const TempFolder folder;
  WriteCheckpoint(CheckpointSpecOf("positions100"), folder.path());
  const auto load = [&] {
    // The digest then comes last, and on this thread.
    const ScopedFault no_thread(FaultPoint::kThread, {.error = EAGAIN});
    return Model::Load(folder.path(), {.device = "cpu"}).status();
  };
  EXPECT_THAT(FailLastRead(load),
              IsError(kUnavailable,
                      "file 'model.safetensors' cannot be read at byte 0: "
                      "Input/output error"));
}

// By its name, which top and debuggers show.
TEST(LoadFaultsTest, TheDigestIsComputedOnItsThread) {
  const TempFolder folder;
  WriteCheckpoint(CheckpointSpecOf("positions100"), folder.path());
  const ScopedFault fault(FaultPoint::kReadAt,
                          {.error = EIO, .thread = "digest"});
  EXPECT_THAT(Model::Load(folder.path(), {.device = "cpu"}),
              IsError(kUnavailable, "Input/output error"));
}

// 16 GiB, a hole of which the disk holds nothing, are read in 16,384 steps and
// take seconds to hash; the owner leaves after the first.
TEST(LoadFaultsTest, ADigestThatNobodyWaitsForEndsAtItsNextStep) {
  constexpr int64_t kBytes = int64_t{16} << 30;
  const TempFolder folder;
  const CheckpointSpec spec = CheckpointSpecOf("positions100");
  WriteCheckpoint(spec, folder.path());
  std::string data;
  for (const TensorToWrite& tensor : CheckpointTensors(spec)) {
    data += tensor.bytes;
  }
  const std::string small = SafetensorsBytes(CheckpointTensors(spec));
  const std::string header = small.substr(8, small.size() - 8 - data.size());
  const std::string large = SafetensorsBytes(
      absl::StrCat(header.substr(0, header.size() - 1),
                   ",\"cls.x\":{\"dtype\":\"F32\",\"shape\":[", kBytes / 4,
                   "],\"data_offsets\":[", data.size(), ",",
                   data.size() + kBytes, "]}}"),
      data);
  folder.Write("model.safetensors", large);
  std::filesystem::resize_file(folder.Path("model.safetensors"),
                               large.size() + kBytes);
  const ModelConfig config = LoadModelConfig(folder.path(), 0).value();
  const auto reader = CheckpointReader::Open(folder.path(), config);
  ASSERT_THAT(reader, IsOk());
  const ScopedFault count(
      FaultPoint::kReadAt,
      {.after = INT_MAX, .thread = "digest", .may_miss = true});
  {
    const DigestThread digest(reader->get());
    ASSERT_TRUE(Eventually([&] { return count.meant() > 0; }));
  }
  EXPECT_LT(count.meant(), kBytes >> 20);
}

TEST(LoadFaultsTest, ASessionWithoutMemoryIsRefused) {
  const TempFolder folder;
  WriteCheckpoint(CheckpointSpecOf("positions100"), folder.path());
  const auto model = Model::Load(folder.path(), {.device = "cpu"});
  ASSERT_THAT(model, IsOk());
  for (int after = 0;; ++after) {
    ASSERT_LT(after, 1000);
    const ScopedFault fault(FaultPoint::kAllocation,
                            {.after = after, .may_miss = true});
    const absl::Status status = (*model)->NewSession({}).status();
    if (status.ok()) break;
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  }
}

}  // namespace
}  // namespace encoderd
