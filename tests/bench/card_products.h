// Every product of a model alone on a card: its time at each bucket of rows,
// the algorithm that serves it there, and that a row keeps its bits.
#ifndef ENCODERD_TESTS_BENCH_CARD_PRODUCTS_H_
#define ENCODERD_TESTS_BENCH_CARD_PRODUCTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/cuda/products/algorithms.h"
#include "engine/device/cuda/products/products.h"
#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

// The products of a layer with H hidden and F feed-forward columns.
std::vector<ProductArgs> LayerProducts(DType element, int64_t hidden,
                                       int64_t inner);

// Tells `print` of each product as JSON objects of one line: one for each
// bucket of up to most_rows rows, or one that says why `library` computes none.
// On the card that the thread uses, `ordinal`.
void MeasureProducts(const std::shared_ptr<Runtime>& runtime, int32_t ordinal,
                     std::unique_ptr<AlgorithmLibrary> library,
                     const std::vector<ProductArgs>& products,
                     int64_t most_rows,
                     const std::function<void(const std::string&)>& print);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_TESTS_BENCH_CARD_PRODUCTS_H_
