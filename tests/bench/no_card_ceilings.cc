// In the place of card_ceilings.cc in a build without CUDA.
#include "tests/bench/card_ceilings.h"

namespace encoderd {

absl::StatusOr<CardCeilings> MeasureCardCeilings(int32_t ordinal, DType dtype) {
  return absl::UnimplementedError("this build has no CUDA");
}

}  // namespace encoderd
