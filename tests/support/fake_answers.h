// What the fake service makes of one input: functions of the input alone.
// Internal to it.
#ifndef ENCODERD_TESTS_SUPPORT_FAKE_ANSWERS_H_
#define ENCODERD_TESTS_SUPPORT_FAKE_ANSWERS_H_

#include <grpcpp/support/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "encoderd/v1/encoder.pb.h"

namespace encoderd::testing {

std::vector<std::string> Words(const std::string& text);

uint32_t CountTokens(const std::string& text);

// As the contract packs them.
std::string PackFloats(const std::vector<float>& values);

// OK, or the contract's refusal of inputs[index]. cut: whether a text past
// kMaxLen is taken.
grpc::Status CheckFakeInput(const v1::Input& input, int index, bool cut);

}  // namespace encoderd::testing

#endif  // ENCODERD_TESTS_SUPPORT_FAKE_ANSWERS_H_
