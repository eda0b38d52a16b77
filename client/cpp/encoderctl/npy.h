// The .npy file format, version 1.0, for matrices of float32.
//
//   6 bytes   \x93NUMPY
//   2 bytes   version 1, 0
//   2 bytes   length of the rest of the header, little-endian
//   header    {'descr': '<f4', 'fortran_order': False, 'shape': (n, h), },
//             padded with spaces, closed by a line feed; 128 bytes with the
//             above, so that it can be written first and filled in at the end
//   data      n x h little-endian float32, row-major
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_NPY_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_NPY_H_

#include <cstdint>
#include <string>

namespace encoderd::ctl {

inline constexpr int kNpyHeaderBytes = 128;

// The first kNpyHeaderBytes bytes of the file of a rows x columns matrix.
std::string NpyHeader(int64_t rows, int64_t columns);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_NPY_H_
