// The angles of rotary positions: a token at position p has each pair of its
// queries' and keys' columns turned by p times the pair's frequency,
//   frequency(pair) = theta^(-2 pair / dims).
//
// The reference computes frequency and angle in float; at position 8191 that
// moves an angle by 4e-4 from the formula's, forty times what fp32 promises.
// So the same steps are rounded to float here: frequencies and angles have its
// bits, cosines and sines differ by a unit in the last place at most. Pure.
#ifndef ENCODERD_ENGINE_CHECKPOINT_ROTATION_H_
#define ENCODERD_ENGINE_CHECKPOINT_ROTATION_H_

#include <cstdint>
#include <vector>

#include "engine/base/tensor.h"

namespace encoderd {

struct RotationTables {
  HostMatrix cos;  // [rows, dims / 2]
  HostMatrix sin;
};

// Radians by which one position turns each pair, [dims / 2]. `dims`: columns of
// a head that are turned, even; theta > 0.
std::vector<float> RotationFrequencies(double theta, int32_t dims);

// Row p is of position p.
RotationTables MakeRotationTables(double theta, int32_t dims, int64_t rows);

// The same for looking at: row p [dims] holds the cosines of its pairs, then
// the sines. The product of two rows depends on their distance only, as the
// scores that they turn do.
HostMatrix RotationRows(double theta, int32_t dims, int64_t rows);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_ROTATION_H_
