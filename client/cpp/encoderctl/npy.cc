#include "client/cpp/encoderctl/npy.h"

#include "absl/strings/str_cat.h"

namespace encoderd::ctl {

std::string NpyHeader(int64_t rows, int64_t columns, absl::string_view descr) {
  constexpr int kPrefixBytes = 10;
  constexpr int kRestBytes = kNpyHeaderBytes - kPrefixBytes;
  std::string rest = absl::StrCat("{'descr': '", descr,
                                  "', 'fortran_order': False, 'shape': (", rows,
                                  ", ", columns, "), }");
  rest.resize(kRestBytes - 1, ' ');
  std::string header("\x93NUMPY\x01\x00", 8);
  header.push_back(static_cast<char>(kRestBytes));
  header.push_back(0);
  return absl::StrCat(header, rest, "\n");
}

}  // namespace encoderd::ctl
