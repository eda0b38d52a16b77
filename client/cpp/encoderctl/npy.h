// The .npy file format, version 1.0, for matrices.
//
//   6 bytes   \x93NUMPY
//   2 bytes   version 1, 0
//   2 bytes   length of the rest of the header, little-endian
//   header    {'descr': '<f4', 'fortran_order': False, 'shape': (n, h), },
//             padded with spaces, closed by a line feed; 128 bytes with the
//             above, so that it can be written first and filled in at the end
//   data      n x h values, little-endian, row-major
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_NPY_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_NPY_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace encoderd::ctl {

inline constexpr int kNpyHeaderBytes = 128;

// The first kNpyHeaderBytes bytes of the file of a rows x columns matrix, whose
// values are of the type `descr`: "<f4", "<f2", "|i1", "|u1".
std::string NpyHeader(int64_t rows, int64_t columns,
                      absl::string_view descr = "<f4");

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_NPY_H_
