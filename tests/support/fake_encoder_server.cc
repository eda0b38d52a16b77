// The fake service as a program, for tests of clients in other languages:
// prints its address on one line and serves until standard input ends. A line
// of standard input asks for the number of texts that came over streams.
//   fake_encoder_server [REFUSALS]
// The first REFUSALS calls of Embed answer RESOURCE_EXHAUSTED (QUEUE_FULL).
// Calls whose first text starts with '~' take 200 ms; with "~~", as long as
// their caller waits.
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/support/fake_encoder_service.h"

int main(int argc, char** argv) {
  encoderd::testing::FakeEncoderService service;
  service.SetDelay(absl::Milliseconds(200));
  if (argc > 1) {
    service.FailNext(std::atoi(argv[1]),
                     encoderd::testing::FakeError(
                         grpc::StatusCode::RESOURCE_EXHAUSTED,
                         "the queue holds 9 of 9 tokens: retry later",
                         "QUEUE_FULL", {{"queued_tokens", "9"}}));
  }
  std::cout << service.target() << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << service.stream_texts() << std::endl;
  }
  return 0;
}
