#include "client/cpp/matrix.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "client/cpp/grpc_status.h"

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

absl::Status ReadRows(const v1::EmbedResponse& response, const Cut& cut,
                      EmbeddingMatrix* matrix) {
  const auto n = static_cast<int64_t>(cut.sent_as.size());
  absl::Status status = CheckCount(response.embeddings_size(), cut);
  if (!status.ok()) return status;
  matrix->rows = n;
  matrix->columns = 0;
  matrix->errors.assign(n, absl::OkStatus());
  matrix->token_counts.assign(n, 0);
  matrix->truncated.assign(n, 0);
  matrix->windows.assign(n, 0);
  for (const v1::Embedding& embedding : response.embeddings()) {
    if (matrix->columns == 0) matrix->columns = Columns(embedding);
  }
  const int64_t columns = matrix->columns;
  matrix->values.assign(n * columns, 0);
  for (int64_t i = 0; i < n; ++i) {
    const int at = cut.sent_as[i];
    matrix->errors[i] =
        at < 0 ? cut.errors[i]
               : ErrorInPlace(response.embeddings(at).error(), cut, i);
    if (!matrix->errors[i].ok()) continue;
    const v1::Embedding& embedding = response.embeddings(at);
    const bool whole = !embedding.has_packed() ||
                       embedding.packed().size() % sizeof(float) == 0;
    if (!whole || Columns(embedding) != columns || columns == 0) {
      return absl::InternalError(
          absl::StrCat("the server returned an embedding with ",
                       Columns(embedding), " values; expected ", columns));
    }
    const void* from =
        embedding.has_packed()
            ? static_cast<const void*>(embedding.packed().data())
            : static_cast<const void*>(embedding.floats().values().data());
    std::memcpy(matrix->values.data() + i * columns, from,
                columns * sizeof(float));
    matrix->token_counts[i] = embedding.token_count();
    matrix->truncated[i] = embedding.truncated() ? 1 : 0;
    matrix->windows[i] = embedding.windows();
  }
  return absl::OkStatus();
}

absl::Status AppendRows(const EmbeddingMatrix& rows, EmbeddingMatrix* matrix) {
  if (matrix->columns == 0) {
    matrix->columns = rows.columns;
    matrix->values.assign(matrix->rows * matrix->columns, 0);
  }
  if (rows.columns != matrix->columns && rows.columns != 0) {
    return absl::InternalError(absl::StrCat("the server returned vectors of ",
                                            matrix->columns, " and of ",
                                            rows.columns, " values"));
  }
  const auto append = [](const auto& from, auto* to) {
    to->insert(to->end(), from.begin(), from.end());
  };
  matrix->rows += rows.rows;
  append(rows.values, &matrix->values);
  matrix->values.resize(matrix->rows * matrix->columns);
  append(rows.token_counts, &matrix->token_counts);
  append(rows.truncated, &matrix->truncated);
  append(rows.windows, &matrix->windows);
  append(rows.errors, &matrix->errors);
  return absl::OkStatus();
}

absl::Status ReadStates(const v1::TokenStates& message, TokenStates* states) {
  const uint64_t values = uint64_t{message.rows()} * message.columns();
  const size_t bytes = message.packed().size();
  if (bytes % sizeof(float) != 0 || bytes / sizeof(float) != values) {
    return absl::InternalError(
        absl::StrCat("the server returned ", bytes, " bytes for ",
                     message.rows(), " x ", message.columns(), " states"));
  }
  states->rows = message.rows();
  states->columns = message.columns();
  states->values.resize(values);
  if (values > 0) {
    std::memcpy(states->values.data(), message.packed().data(), bytes);
  }
  states->token_count = message.token_count();
  states->truncated = message.truncated();
  return absl::OkStatus();
}

}  // namespace encoderd::client
