#include "client/cpp/matrix.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace encoderd::client {
namespace {

static_assert(std::endian::native == std::endian::little,
              "packed values are little-endian and copied as they are");

int64_t Columns(const v1::Embedding& embedding) {
  return embedding.has_packed()
             ? static_cast<int64_t>(embedding.packed().size() / sizeof(float))
             : embedding.floats().values_size();
}

}  // namespace

absl::Status AppendRows(const v1::EmbedResponse& response, int64_t inputs,
                        EmbeddingMatrix* matrix) {
  if (response.embeddings_size() != inputs) {
    return absl::InternalError(
        absl::StrCat("the server answered ", response.embeddings_size(),
                     " embeddings for ", inputs, " inputs"));
  }
  if (matrix->rows == 0 && inputs > 0) {
    matrix->columns = Columns(response.embeddings(0));
  }
  const int64_t columns = matrix->columns;
  matrix->values.resize((matrix->rows + inputs) * columns);
  float* out = matrix->values.data() + matrix->rows * columns;
  for (const v1::Embedding& embedding : response.embeddings()) {
    const bool whole = !embedding.has_packed() ||
                       embedding.packed().size() % sizeof(float) == 0;
    if (!whole || Columns(embedding) != columns || columns == 0) {
      return absl::InternalError(
          absl::StrCat("the server answered an embedding of ",
                       Columns(embedding), " values; expected ", columns));
    }
    const void* from =
        embedding.has_packed()
            ? static_cast<const void*>(embedding.packed().data())
            : static_cast<const void*>(embedding.floats().values().data());
    std::memcpy(out, from, columns * sizeof(float));
    out += columns;
    matrix->token_counts.push_back(embedding.token_count());
    matrix->truncated.push_back(embedding.truncated() ? 1 : 0);
  }
  matrix->rows += inputs;
  return absl::OkStatus();
}

absl::Status ReadStates(const v1::TokenStates& message, TokenStates* states) {
  const uint64_t values = uint64_t{message.rows()} * message.columns();
  if (message.packed().size() != values * sizeof(float)) {
    return absl::InternalError(absl::StrCat(
        "the server answered ", message.packed().size(), " bytes for ",
        message.rows(), " x ", message.columns(), " states"));
  }
  states->rows = message.rows();
  states->columns = message.columns();
  states->values.resize(values);
  if (values > 0) {
    std::memcpy(states->values.data(), message.packed().data(),
                message.packed().size());
  }
  states->token_count = message.token_count();
  states->truncated = message.truncated();
  return absl::OkStatus();
}

}  // namespace encoderd::client
