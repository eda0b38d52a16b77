// The bits of the goldens' embeddings, pinned: digests.txt has a SHA-256 for
// each instruction set and model in fp32, and in bf16 as "..._in_bf16"; those
// of AVX-512 in bf16 are named avx512_bf16, with int8 products avx512_int8.
// They change only where a change means them to, which CHANGELOG.md then says.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/device/cpu/cpu_device.h"
#include "engine/io/sha256.h"
#include "tests/golden/golden.h"
#include "tests/golden/golden_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

using cpu::Isa;

// All of MiniLM's would take the portable kernels a minute.
constexpr size_t kMiniLmStep = 8;

// "ISA MODEL" -> digest.
std::map<std::string, std::string> ReadDigests() {
  std::ifstream file(ENCODERD_SOURCE_DIR "/tests/golden/digests.txt");
  std::map<std::string, std::string> digests;
  for (std::string isa, model, digest; file >> isa >> model >> digest;)
    digests[absl::StrCat(isa, " ", model)] = digest;
  return digests;
}

// The pooled vectors, end to end as bytes.
absl::StatusOr<std::string> Embed(const Golden& golden, size_t step,
                                  const GoldenModel& model) {
  std::string bytes;
  PackedBatch batch;
  const SequenceOutput output = {.pooling = model.config.pooling,
                                 .normalize = model.config.normalize};
  const auto run = [&]() -> absl::Status {
    const std::vector<SequenceOutput> outputs(batch.num_sequences(), output);
    ForwardResult result;
    const absl::Status status = model.session->Run(batch, outputs, &result);
    bytes.append(reinterpret_cast<const char*>(result.values.data()),
                 result.values.size() * sizeof(float));
    batch.Clear();
    return status;
  };
  absl::Status status;
  for (size_t b = 0; b < golden.sequences.size() && status.ok(); b += step) {
    const TokenSequence& sequence = golden.sequences[b];
    if (batch.num_tokens() + sequence.size() >
        model.session->max_batch_tokens())
      status = run();
    batch.Append(sequence, model.limits);
  }
  if (status.ok()) status = run();
  if (!status.ok()) return status;
  return bytes;
}

class DigestTest : public testing::TestWithParam<std::string> {
 protected:
  void Check(Isa isa, DType dtype, const std::string& digest_name) {
    if (isa > cpu::DetectIsa())
      GTEST_SKIP() << "this CPU has no " << cpu::IsaName(isa);
    CheckOn(cpu::OpenCpu(dtype, isa), digest_name);
  }

  void CheckInt8(Isa isa) {
    if (!cpu::HasVnni() || !cpu::HasIsa(isa)) {
      GTEST_SKIP() << "this CPU has no avx512_vnni or no " << cpu::IsaName(isa);
    }
    CheckOn(cpu::OpenInt8Cpu(isa), "avx512_int8");
  }

  void CheckOn(absl::StatusOr<std::unique_ptr<Device>> device,
               const std::string& digest_name) {
    const TempFolder temp;
    const auto folder = GoldenFolder(GetParam(), temp);
    ASSERT_THAT(folder, IsOk());
    ASSERT_THAT(device, IsOk());
    const auto model = OpenGoldenModel(*folder, *std::move(device));
    ASSERT_THAT(model, IsOk());
    const auto golden = ReadGolden(GetParam());
    ASSERT_THAT(golden, IsOk());
    const auto bytes =
        Embed(*golden, GetParam() == "minilm" ? kMiniLmStep : 1, *model);
    ASSERT_THAT(bytes, IsOk());
    const auto digest = Sha256OfString(*bytes);
    ASSERT_THAT(digest, IsOk());
    const std::string key = absl::StrCat(digest_name, " ", GetParam());
    const auto digests = ReadDigests();
    const auto pinned = digests.find(key);
    ASSERT_NE(pinned, digests.end())
        << "digests.txt lacks this line: " << key << " " << *digest;
    EXPECT_EQ(*digest, pinned->second)
        << "the bits of the embeddings have changed; if that is meant, "
           "digests.txt and CHANGELOG.md say so: "
        << key << " " << *digest;
  }
};

TEST_P(DigestTest, PortableBitsAreThePinnedOnes) {
  Check(Isa::kPortable, DType::kF32, "portable");
}
TEST_P(DigestTest, PortableBitsInBf16AreThePinnedOnes) {
  Check(Isa::kPortable, DType::kBF16, "portable_in_bf16");
}
TEST_P(DigestTest, Avx2BitsAreThePinnedOnes) {
  Check(Isa::kAvx2, DType::kF32, "avx2");
}
TEST_P(DigestTest, Avx2BitsInBf16AreThePinnedOnes) {
  Check(Isa::kAvx2, DType::kBF16, "avx2_in_bf16");
}
TEST_P(DigestTest, Avx512BitsAreThePinnedOnes) {
  Check(Isa::kAvx512, DType::kF32, "avx512");
}
TEST_P(DigestTest, Avx512Bf16BitsAreThePinnedOnes) {
  Check(Isa::kAvx512Bf16, DType::kBF16, "avx512_bf16");
}
// Multiplied as floats here, by vdpbf16ps above where that is fast.
TEST_P(DigestTest, Avx512BitsInBf16AreThoseOfAvx512Bf16) {
  Check(Isa::kAvx512, DType::kBF16, "avx512_bf16");
}
TEST_P(DigestTest, Avx512BitsOfInt8ProductsAreThePinnedOnes) {
  CheckInt8(Isa::kAvx512);
}
TEST_P(DigestTest, Avx512Bf16BitsOfInt8ProductsAreThoseOfAvx512) {
  CheckInt8(Isa::kAvx512Bf16);
}

INSTANTIATE_TEST_SUITE_P(Models, DigestTest, testing::ValuesIn(GoldenNames()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

}  // namespace
}  // namespace encoderd
