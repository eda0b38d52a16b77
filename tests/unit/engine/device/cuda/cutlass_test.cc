// The host's side of the products by CUTLASS, over tiles of the test's own.
#include <gmock/gmock.h>

#include <limits>

#include "engine/device/cuda/products/cutlass_products.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What the tiles below answer, and what they were asked.
struct Bench {
  int32_t most_rows = std::numeric_limits<int32_t>::max();  // of tile "wide"
  int64_t workspace = 0;                                    // of tile "wide"
  int prepared = 0, started = 0;                            // codes
  std::vector<int32_t> checked_rows;
  std::vector<CutlassGeluArgs> starts;
  void* stream = nullptr;
  bool overlaps = false;
};
Bench* bench = nullptr;

std::vector<CutlassGeluTile> Tiles() {
  CutlassGeluTile wide;
  wide.name = "wide";
  wide.can_implement = [](const CutlassGeluArgs& args) {
    bench->checked_rows.push_back(args.rows);
    return args.rows <= bench->most_rows;
  };
  wide.workspace_bytes = [](const CutlassGeluArgs&) {
    return bench->workspace;
  };
  wide.prepare = [](DType) { return bench->prepared; };
  wide.start = [](const CutlassGeluArgs& args, const OpStream& stream) {
    bench->starts.push_back(args);
    bench->stream = stream.stream;
    bench->overlaps = stream.overlaps;
    return bench->started;
  };
  CutlassGeluTile narrow = wide;
  narrow.name = "narrow";
  narrow.can_implement = [](const CutlassGeluArgs& args) {
    return args.out < 1000;
  };
  narrow.workspace_bytes = [](const CutlassGeluArgs&) { return int64_t{0}; };
  return {wide, narrow};
}

class CutlassLibraryTest : public ::testing::Test {
 protected:
  CutlassLibraryTest() { bench = &bench_; }
  ~CutlassLibraryTest() override { bench = nullptr; }

  static absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> Open(int32_t major,
                                                                int32_t minor) {
    CutlassParts parts;
    parts.version = "1.2.3";
    parts.tiles = Tiles();
    parts.processors = 132;
    parts.error_text = [](int code) { return "error " + std::to_string(code); };
    return NewCutlassLibraryOf({"NVIDIA H200", major, minor, 1 << 30},
                               std::move(parts));
  }
  static ProductArgs Args() {
    ProductArgs args;
    args.element = DType::kBF16;
    args.in = 384;
    args.out = 256;
    args.epilogue = Epilogue::kBiasGeluErf;
    args.weight = At(0x100);
    args.bias = At(0x200);
    return args;
  }
  static void* At(uintptr_t address) {
    return reinterpret_cast<void*>(address);  // never looked at
  }
  // Why `args` have no candidates.
  std::string Refusal(const ProductArgs& args) {
    const auto candidates = library_->Candidates(args, 128);
    EXPECT_EQ(candidates.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_FALSE(library_->Create(args, "wide").ok());
    const absl::Status checked = library_->Check(args, "wide", kCheckedRows);
    EXPECT_EQ(checked.code(), absl::StatusCode::kInvalidArgument) << checked;
    return std::string(candidates.status().message());
  }

  Bench bench_;
  const std::unique_ptr<AlgorithmLibrary> library_ = Open(9, 0).value();
};

TEST_F(CutlassLibraryTest, OffersItsTilesByNameTheFirstChoiceFirst) {
  EXPECT_EQ(library_->name(), "CUTLASS 1.2.3");
  for (const DType element : {DType::kF16, DType::kBF16}) {
    ProductArgs args = Args();
    args.element = element;
    EXPECT_THAT(library_->Candidates(args, 128).value(),
                ElementsAre("wide", "narrow"));
  }
  EXPECT_THAT(bench_.checked_rows, ::testing::IsSupersetOf({1, 8192}));
}

TEST_F(CutlassLibraryTest, LeavesOutATileThatDoesNotServeEveryCountOfRows) {
  bench_.most_rows = 7;
  EXPECT_THAT(library_->Candidates(Args(), 128).value(), ElementsAre("narrow"));
  EXPECT_EQ(library_->Check(Args(), "wide", kCheckedRows),
            absl::InvalidArgumentError(
                "wide: not for 128 rows of bf16 384 256 bias_gelu"));
  EXPECT_TRUE(library_->Check(Args(), "narrow", kCheckedRows).ok());
}

TEST_F(CutlassLibraryTest, LeavesOutATileThatTakesWorkspace) {
  bench_.workspace = 64;
  EXPECT_THAT(library_->Candidates(Args(), 128).value(), ElementsAre("narrow"));
  EXPECT_EQ(library_->Check(Args(), "wide", kCheckedRows),
            absl::InvalidArgumentError(
                "wide: takes 64 bytes of workspace for 1 rows"));
  ProductArgs many = Args();
  many.out = 1024;
  EXPECT_EQ(Refusal(many),
            "CUTLASS 1.2.3 has no product bf16 384 1024 bias_gelu: narrow: not "
            "for 1 rows of bf16 384 1024 bias_gelu");
}

TEST_F(CutlassLibraryTest, RefusesOtherProductsSayingWhy) {
  ProductArgs args = Args();
  args.operands = Operands::kE4m3;
  EXPECT_EQ(Refusal(args),
            "CUTLASS 1.2.3 has no product bf16_e4m3 384 256 bias_gelu: rows "
            "are in e4m3");
  args = Args();
  args.element = DType::kF32;
  EXPECT_THAT(Refusal(args), HasSubstr("elements have 32 bits, not 16"));
  for (const Epilogue other : {Epilogue::kNone, Epilogue::kBias,
                               Epilogue::kBiasGeluTanh, Epilogue::kBiasRelu}) {
    args = Args();
    args.epilogue = other;
    EXPECT_THAT(Refusal(args), HasSubstr("only the epilogue bias_gelu"));
  }
  for (const int64_t size :
       {int64_t{0}, int64_t{-8}, int64_t{12}, int64_t{1} << 31}) {
    args = Args();
    args.in = size;
    EXPECT_THAT(Refusal(args),
                HasSubstr("in is " + std::to_string(size) +
                          ", not a multiple of 8 of at most 2147483647"));
    args = Args();
    args.out = size;
    EXPECT_THAT(Refusal(args), HasSubstr("out is " + std::to_string(size)));
  }
  args = Args();
  args.weight = At(0x108);
  EXPECT_THAT(Refusal(args), HasSubstr("weight is not aligned to 16 bytes"));
  args = Args();
  args.bias = At(0x204);
  EXPECT_THAT(Refusal(args), HasSubstr("bias is not aligned to 16 bytes"));
}

TEST_F(CutlassLibraryTest, RefusesBytesThatNameNoTile) {
  const absl::Status unknown = absl::InvalidArgumentError(
      "CUTLASS 1.2.3 has no tile 'other\\x01'; "
      "available: wide, narrow");
  EXPECT_EQ(library_->Check(Args(), "other\x01", kCheckedRows), unknown);
  EXPECT_EQ(library_->Create(Args(), "other\x01").status(), unknown);
  EXPECT_FALSE(library_->Check(Args(), "", kCheckedRows).ok());
}

TEST_F(CutlassLibraryTest, RefusesOtherCards) {
  EXPECT_EQ(Open(8, 9).status(),
            absl::UnimplementedError(
                "CUTLASS 1.2.3: its kernels are for compute capability 9.0, "
                "and NVIDIA H200 has 8.9"));
  EXPECT_EQ(Open(10, 0).status().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(CutlassLibraryTest, RefusesATileThatTheCardRefuses) {
  bench_.prepared = 801;
  EXPECT_EQ(Refusal(Args()),
            "CUTLASS 1.2.3 has no product bf16 384 256 bias_gelu: narrow: "
            "error 801");
}

TEST_F(CutlassLibraryTest, TellsALostCardFromARefusal) {
  bench_.prepared = 719;
  const absl::Status lost = absl::DataLossError("wide: error 719");
  EXPECT_EQ(library_->Candidates(Args(), 128).status(), lost);
  EXPECT_EQ(library_->Check(Args(), "wide", kCheckedRows), lost);
  EXPECT_EQ(library_->Create(Args(), "wide").status(), lost);
}

TEST_F(CutlassLibraryTest, StartsOneKernelOfItsTileForARun) {
  const auto product = library_->Create(Args(), "wide");
  ASSERT_TRUE(product.ok()) << product.status();
  const absl::Status ran = (*product)->Run(
      At(0x300), 7, At(0x400), OpStream(At(0x500)).WithOverlaps(true));
  ASSERT_TRUE(ran.ok()) << ran;
  ASSERT_EQ(bench_.starts.size(), 1);
  const CutlassGeluArgs& args = bench_.starts[0];
  EXPECT_EQ(args.element, DType::kBF16);
  EXPECT_EQ(args.x, At(0x300));
  EXPECT_EQ(args.weight, At(0x100));
  EXPECT_EQ(args.bias, At(0x200));
  EXPECT_EQ(args.y, At(0x400));
  EXPECT_EQ(args.rows, 7);
  EXPECT_EQ(args.in, 384);
  EXPECT_EQ(args.out, 256);
  EXPECT_EQ(args.processors, 132);
  EXPECT_EQ(bench_.stream, At(0x500));
  EXPECT_TRUE(bench_.overlaps);
}

TEST_F(CutlassLibraryTest, StartsNothingForRowsThatItCannotTake) {
  const auto product = library_->Create(Args(), "narrow").value();
  EXPECT_TRUE(product->Run(At(0x300), 0, At(0x400), nullptr).ok());
  EXPECT_EQ(product->Run(At(0x300), int64_t{1} << 31, At(0x400), nullptr),
            absl::InvalidArgumentError(
                "CUTLASS narrow: 2147483648 rows; at most 2147483647"));
  EXPECT_EQ(product->Run(At(0x308), 1, At(0x400), nullptr),
            absl::InvalidArgumentError(
                "CUTLASS narrow: x is not aligned to 16 bytes"));
  EXPECT_EQ(product->Run(At(0x300), 1, At(0x402), nullptr),
            absl::InvalidArgumentError(
                "CUTLASS narrow: y is not aligned to 16 bytes"));
  EXPECT_TRUE(bench_.starts.empty());
}

TEST_F(CutlassLibraryTest, NamesTheTileWhoseStartFails) {
  const auto product = library_->Create(Args(), "wide").value();
  bench_.started = 701;
  EXPECT_EQ(product->Run(At(0x300), 1, At(0x400), nullptr),
            absl::InternalError("CUTLASS wide: error 701"));
  bench_.started = 719;
  EXPECT_EQ(product->Run(At(0x300), 1, At(0x400), nullptr),
            absl::DataLossError("CUTLASS wide: error 719"));
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
