#include "engine/device/cuda/products/cublaslt_library.h"

#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace encoderd {
namespace cuda {
namespace {

absl::StatusOr<CublasLt> Load() {
  // The major version that this was compiled for: others may differ in layout.
  const std::string name = absl::StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR);
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return absl::UnavailableError(absl::StrCat(
        "cannot load ", name, ": ", why == nullptr ? "unknown" : why,
        "; install cuBLAS ", CUBLAS_VER_MAJOR,
        " or name its folder in LD_LIBRARY_PATH"));
  }
  CublasLt table;
  std::string missing;
#define ENCODERD_FIND(function)                                              \
  table.function =                                                           \
      reinterpret_cast<decltype(table.function)>(dlsym(library, #function)); \
  if (table.function == nullptr) missing = #function;
  ENCODERD_CUBLASLT_FUNCTIONS(ENCODERD_FIND)
#undef ENCODERD_FIND
  if (!missing.empty()) {
    return absl::UnavailableError(absl::StrCat(name, " lacks ", missing));
  }
  return table;
}

}  // namespace

absl::StatusOr<const CublasLt*> LoadCublasLt() {
  static const auto* const loaded = new absl::StatusOr<CublasLt>(Load());
  if (!loaded->ok()) return loaded->status();
  return &**loaded;
}

}  // namespace cuda
}  // namespace encoderd
