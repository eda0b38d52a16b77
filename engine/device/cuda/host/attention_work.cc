#include "engine/device/cuda/host/attention_work.h"

#include <algorithm>
#include <tuple>

namespace encoderd {
namespace cuda {

AttentionCounts ListAttentionWork(const std::vector<int32_t>& cu_seqlens,
                                  const AttentionRule& rule,
                                  std::vector<int32_t>* order,
                                  AttentionWork* work) {
  const auto sequences = static_cast<int32_t>(cu_seqlens.size()) - 1;
  const auto length = [&](int32_t b) {
    return cu_seqlens[b + 1] - cu_seqlens[b];
  };
  const auto rank = [&](int32_t b) {
    return std::tuple(rule.Of(length(b)), -length(b), b);
  };
  order->clear();
  for (int32_t b = 0; b < sequences; ++b) order->push_back(b);
  std::sort(order->begin(), order->end(),
            [&](int32_t a, int32_t b) { return rank(a) < rank(b); });
  AttentionCounts counts = {};
  for (const int32_t b : *order) {
    const AttentionPath path = rule.Of(length(b));
    const auto entries = static_cast<int32_t>(rule.Entries(length(b)));
    for (int32_t block = 0; block < entries; ++block)
      *work++ = {cu_seqlens[b], length(b), block, path};
    counts[static_cast<size_t>(path)] += entries;
  }
  return counts;
}

}  // namespace cuda
}  // namespace encoderd
