// Every tolerance of the numeric tests, each with its reason.
#ifndef ENCODERD_TESTS_SUPPORT_TOLERANCES_H_
#define ENCODERD_TESTS_SUPPORT_TOLERANCES_H_

namespace encoderd {

// Largest difference of a normalized fp32 vector from the reference: the
// project's promise.
constexpr double kFp32Vector = 1e-5;
// Largest difference of a token state, whose values are about 1 (a LayerNorm's
// output): 1e-5 for a value of a few units.
constexpr double kFp32State = 3e-5;
// The sum of three table rows in float against double: two roundings of half a
// unit in the last place of values below 4.
constexpr double kFp32TableSum = 5e-7;
// The same for token states and unnormalized vectors of goldens, as a share of
// the largest value of the reference where that is over 1.
constexpr double kFp32Share = 1e-5;
// Least cosine of fp32 to the reference: the project's promise.
constexpr double kFp32Cosine = 0.999999;
// Least cosine of bf16 to the reference: the project's promise.
constexpr double kBf16Cosine = 0.999;
// Least cosine with products in fp8 (e4m3): the project's promise.
constexpr double kFp8Cosine = 0.99;
// Least cosine with products of 8-bit integers: the project's promise.
constexpr double kInt8Cosine = 0.99;
// Largest difference of GELU from x Phi(x): one rounding of x Phi(x) near 6.
constexpr double kGelu = 1e-6;
// The same in bf16, whose own rounding is that much for values of 0.06.
constexpr double kGeluBf16 = 1.5e-4;
// One op in float against double, values of about 1.
constexpr double kFp32Op = 5e-6;
// One op in bf16: a bf16 has 8 bits, so half a unit in the last place of a
// value below 4 is 2^-7; products of rounded inputs add as much again.
constexpr double kBf16Op = 3e-2;

// What products in e4m3 may lose in their sums, as a share of the sum of their
// terms' sizes: within a step the tensor cores of compute capability 9.0 keep
// about 14 bits (arXiv 2412.19437, section 3.3.2). An H200 was off by 6e-6.
constexpr double kE4m3SumLoss = 0x1p-13;

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_TOLERANCES_H_
