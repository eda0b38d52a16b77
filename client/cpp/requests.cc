#include "client/cpp/requests.h"

namespace encoderd::client {

v1::EmbedRequest ToRequest(const EmbedOptions& options) {
  v1::EmbedRequest request;
  request.set_model(options.model);
  v1::EmbedOptions& wanted = *request.mutable_options();
  wanted.set_pooling(options.pooling);
  if (options.normalize.has_value()) wanted.set_normalize(*options.normalize);
  wanted.set_dimensions(options.dimensions);
  wanted.set_truncate(options.truncate);
  wanted.set_prompt_name(options.prompt_name);
  wanted.set_packed(true);
  wanted.set_encoding(options.encoding);
  if (options.ranges.minimum_size() + options.ranges.maximum_size() > 0) {
    *wanted.mutable_ranges() = options.ranges;
  }
  if (options.windows.has_value()) {
    wanted.mutable_windows()->set_overlap(*options.windows);
  }
  wanted.set_on_error(options.on_error);
  return request;
}

v1::EncodeRequest ToRequest(const EncodeOptions& options) {
  v1::EncodeRequest request;
  request.set_model(options.model);
  if (options.layer.has_value()) request.set_layer(*options.layer);
  request.set_truncate(options.truncate);
  request.set_span(options.span);
  request.set_before_norm(options.before_norm);
  request.set_on_error(options.on_error);
  return request;
}

}  // namespace encoderd::client
