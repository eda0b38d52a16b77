// Tables of code points as sorted, disjoint ranges, and the search in them.
// Pure functions. For the tables of engine/tokenizer.
#ifndef ENCODERD_ENGINE_TOKENIZER_UNICODE_CODE_POINT_RANGES_H_
#define ENCODERD_ENGINE_TOKENIZER_UNICODE_CODE_POINT_RANGES_H_

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace encoderd::unicode {

struct Range {
  char32_t first;
  char32_t last;  // included
};

// Whether one of the ranges, which are sorted and disjoint, holds `c`.
template <size_t n>
bool Contains(const Range (&ranges)[n], char32_t c) {
  const Range* after =
      std::upper_bound(std::begin(ranges), std::end(ranges), c,
                       [](char32_t x, const Range& r) { return x < r.first; });
  return after != std::begin(ranges) && c <= std::prev(after)->last;
}

}  // namespace encoderd::unicode

#endif  // ENCODERD_ENGINE_TOKENIZER_UNICODE_CODE_POINT_RANGES_H_
