// The kernel behind cutlass_gelu.h: a template over tile and cluster. Each .cu
// that includes it compiles one tile for both elements.
//
// A block is three groups of 128 threads. One brings tiles of x and weight to
// shared memory (TMA, as many stages as fit); two multiply (wgmma), separate
// tiles in turn (ping-pong), so that the epilogue of one overlaps the products
// of the other. Bytes moved: x rows in, weight out in, bias out, y rows out.
//
// A row's bits do not depend on other rows: an element of y has one float
// accumulator over all of K, in steps of 64 from 0, in every tile and block
// alike, whatever the count of rows; nothing splits K (the persistent scheduler
// gives a block whole tiles, and takes no workspace). Rows past the last are
// read as zeros and not written.
//
// In a launch that overlaps, the threads that load x and weight wait for the
// earlier kernels, and the others for their tiles: the build sets
// CUTLASS_ENABLE_GDC_FOR_SM90, by which CUTLASS compiles that wait.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUTLASS_GELU_KERNEL_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUTLASS_GELU_KERNEL_H_

#include <cuda_runtime.h>
#include <cutlass/arch/grid_dependency_control.h>
#include <cutlass/cutlass.h>
#include <cutlass/device_kernel.h>

#include <cute/tensor.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/fusion/sm90_callbacks_tma_warpspecialized.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <type_traits>

#include "engine/device/cuda/kernels/gelu.h"
#include "engine/device/cuda/products/cutlass_gelu.h"

namespace encoderd {
namespace cuda {

#ifdef __CUDA_ARCH__
static_assert(cutlass::arch::IsGdcGloballyEnabled,
              "a launch that overlaps would read x before it is written");
#endif

// GELU by gelu.h in CUTLASS's epilogue, of a fragment that will be rounded to
// T; CUTLASS's own calls erff, twice the instructions or more.
template <typename T>
struct CutlassGeluOf {
  using Element =
      std::conditional_t<std::is_same_v<T, cutlass::bfloat16_t>, Bf16, Half>;

  template <typename Fragment>
  struct Compute;
  template <int kSize>
  struct Compute<cutlass::Array<float, kSize>> {
    using Fragment = cutlass::Array<float, kSize>;
    CUTLASS_DEVICE Fragment operator()(const Fragment& values) const {
      Fragment result;
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < kSize; ++i)
        result[i] = FastGeluErf<Element>(values[i]);
      return result;
    }
  };
};

// Cluster: blocks that share what they load.
template <typename T, typename Tile, typename Cluster>
struct CutlassGelu {
  using RowMajor = cutlass::layout::RowMajor;
  using ColumnMajor = cutlass::layout::ColumnMajor;
  static constexpr auto kRound = cutlass::FloatRoundStyle::round_to_nearest;
  static constexpr int kAlignment = 16 / sizeof(T);

  // gelu(sum + bias) in float, then rounded. A row vector runs along columns.
  using Bias = cutlass::epilogue::fusion::Sm90RowBroadcast<0, Tile, float>;
  using Sum = cutlass::epilogue::fusion::Sm90EVT<
      cutlass::epilogue::fusion::Sm90Compute<cutlass::plus, float, float,
                                             kRound>,
      cutlass::epilogue::fusion::Sm90AccFetch, Bias>;
  using Gelu = cutlass::epilogue::fusion::Sm90EVT<
      cutlass::epilogue::fusion::Sm90Compute<CutlassGeluOf<T>::template Compute,
                                             T, float, kRound>,
      Sum>;

  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void,
      RowMajor, kAlignment, T, RowMajor, kAlignment,
      cutlass::epilogue::TmaWarpSpecialized, Gelu>::CollectiveOp;
  // weight [out,in], row-major, is a column-major [in,out].
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, T, RowMajor,
      kAlignment, T, ColumnMajor, kAlignment, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
          sizeof(typename Epilogue::SharedStorage))>,
      cutlass::gemm::KernelTmaWarpSpecializedPingpong>::CollectiveOp;
  using Kernel =
      cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>,
                                           Mainloop, Epilogue>;

  static typename Kernel::Arguments ArgumentsOf(const CutlassGeluArgs& args) {
    typename Kernel::Arguments arguments;
    arguments.mode = cutlass::gemm::GemmUniversalMode::kGemm;
    arguments.problem_shape = {args.rows, args.out, args.in, 1};
    arguments.mainloop.ptr_A = static_cast<const T*>(args.x);
    arguments.mainloop.dA = {args.in, cute::_1{}, 0};
    arguments.mainloop.ptr_B = static_cast<const T*>(args.weight);
    arguments.mainloop.dB = {args.in, cute::_1{}, 0};
    arguments.epilogue.thread = {{{}, {args.bias}, {}}, {}};
    arguments.epilogue.ptr_D = static_cast<T*>(args.y);
    arguments.epilogue.dD = {args.out, cute::_1{}, 0};
    arguments.hw_info.sm_count = args.processors;
    return arguments;
  }

  static bool CanImplement(const CutlassGeluArgs& args) {
    return Kernel::can_implement(ArgumentsOf(args));
  }
  static int64_t WorkspaceBytes(const CutlassGeluArgs& args) {
    return static_cast<int64_t>(Kernel::get_workspace_size(ArgumentsOf(args)));
  }
  // `attributes` must live as long as what is returned.
  static cudaLaunchConfig_t ConfigOf(dim3 grid, const OpStream& on,
                                     cudaLaunchAttribute (&attributes)[2]) {
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {cute::size<0>(Cluster{}),
                                    cute::size<1>(Cluster{}), 1};
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = Kernel::get_block_shape();
    config.dynamicSmemBytes = Kernel::SharedStorageSize;
    config.stream = static_cast<cudaStream_t>(on.stream);
    config.attrs = attributes;
    config.numAttrs = on.overlaps ? 2 : 1;
    return config;
  }
  static int Prepare() {
    cudaError_t code = cudaFuncSetAttribute(
        cutlass::device_kernel<Kernel>,
        cudaFuncAttributeMaxDynamicSharedMemorySize, Kernel::SharedStorageSize);
    cudaLaunchAttribute attributes[2] = {};
    const cudaLaunchConfig_t config =
        ConfigOf({cute::size<0>(Cluster{}), cute::size<1>(Cluster{}), 1},
                 nullptr, attributes);
    int clusters = 0;
    if (code == cudaSuccess) {
      code = cudaOccupancyMaxActiveClusters(
          &clusters, cutlass::device_kernel<Kernel>, &config);
    }
    if (code != cudaSuccess) cudaGetLastError();  // it is reported here
    if (code == cudaSuccess && clusters == 0) return cudaErrorNotSupported;
    return code;
  }
  static int Start(const CutlassGeluArgs& args, const OpStream& stream) {
    const typename Kernel::Params params =
        Kernel::to_underlying_arguments(ArgumentsOf(args), nullptr);
    cudaLaunchAttribute attributes[2] = {};
    const cudaLaunchConfig_t config =
        ConfigOf(Kernel::get_grid_shape(params), stream, attributes);
    const cudaError_t code =
        cudaLaunchKernelEx(&config, cutlass::device_kernel<Kernel>, params);
    if (code != cudaSuccess) cudaGetLastError();  // it is reported here
    return code;
  }
};

// The tile of this name, over both elements.
template <typename Tile, typename Cluster>
CutlassGeluTile CutlassGeluTileOf(const char* name) {
  using OfHalf = CutlassGelu<cutlass::half_t, Tile, Cluster>;
  using OfBf16 = CutlassGelu<cutlass::bfloat16_t, Tile, Cluster>;
  CutlassGeluTile tile;
  tile.name = name;
  tile.can_implement = [](const CutlassGeluArgs& args) {
    return args.element == DType::kF16 ? OfHalf::CanImplement(args)
                                       : OfBf16::CanImplement(args);
  };
  tile.workspace_bytes = [](const CutlassGeluArgs& args) {
    return args.element == DType::kF16 ? OfHalf::WorkspaceBytes(args)
                                       : OfBf16::WorkspaceBytes(args);
  };
  tile.prepare = [](DType element) {
    return element == DType::kF16 ? OfHalf::Prepare() : OfBf16::Prepare();
  };
  tile.start = [](const CutlassGeluArgs& args, const OpStream& stream) {
    return args.element == DType::kF16 ? OfHalf::Start(args, stream)
                                       : OfBf16::Start(args, stream);
  };
  return tile;
}

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUTLASS_GELU_KERNEL_H_
