// Embeds two texts and prints how similar they are.
//   example_embed [HOST:PORT]
#include <iostream>
#include <numeric>

#include "client/cpp/client.h"
#include "client/cpp/error.h"

int main(int argc, char** argv) {
  using encoderd::client::Client;
  const std::string target =
      argc > 1 ? argv[1] : encoderd::client::kDefaultTarget;
  const auto client = Client::Connect(target);
  if (!client.ok()) {
    std::cerr << encoderd::client::Describe(client.status()) << "\n";
    return 1;
  }
  const auto vectors = (*client)->Embed({"A man eats.", "Someone has a meal."});
  if (!vectors.ok()) {
    std::cerr << encoderd::client::Describe(vectors.status()) << "\n";
    return 1;
  }
  const auto a = vectors->row(0);
  const auto b = vectors->row(1);
  std::cout << vectors->rows << " x " << vectors->columns << ", similarity "
            << std::inner_product(a.begin(), a.end(), b.begin(), 0.0f) << "\n";
  return 0;
}
