#include "engine/device/cuda/attention_work.h"

#include <algorithm>

namespace encoderd {
namespace cuda {

int64_t ListAttentionWork(const std::vector<int32_t>& cu_seqlens,
                          Element element, std::vector<int32_t>* order,
                          AttentionWork* work) {
  const auto sequences = static_cast<int32_t>(cu_seqlens.size()) - 1;
  const auto length = [&](int32_t b) {
    return cu_seqlens[b + 1] - cu_seqlens[b];
  };
  order->clear();
  for (int32_t b = 0; b < sequences; ++b) order->push_back(b);
  std::sort(order->begin(), order->end(), [&](int32_t a, int32_t b) {
    return length(a) != length(b) ? length(a) > length(b) : a < b;
  });
  const int32_t queries = AttentionQueries(element);
  int64_t count = 0;
  for (const int32_t b : *order) {
    for (int32_t block = 0; block * queries < length(b); ++block)
      work[count++] = {cu_seqlens[b], length(b), block, 0};
  }
  return count;
}

}  // namespace cuda
}  // namespace encoderd
