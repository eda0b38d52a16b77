// What a card can do at most, measured on it: shares are quoted of these.
#ifndef ENCODERD_TESTS_BENCH_CARD_CEILINGS_H_
#define ENCODERD_TESTS_BENCH_CARD_CEILINGS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/base/tensor.h"

namespace encoderd {

struct CardCeilings {
  double flops = 0;             // FLOP/s of one product of 8192^3
  double bytes_per_second = 0;  // of a copy of 1 GiB, read and written
};

// Of card `ordinal`. UNIMPLEMENTED: a build without CUDA; UNAVAILABLE: no card.
absl::StatusOr<CardCeilings> MeasureCardCeilings(int32_t ordinal, DType dtype);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_BENCH_CARD_CEILINGS_H_
