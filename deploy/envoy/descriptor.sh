#!/usr/bin/env bash
# Writes what Envoy's transcoder knows the contract by: the service, its
# messages, and the details of errors.
#   deploy/envoy/descriptor.sh FILE
set -euo pipefail

if [[ $# != 1 ]]; then
  echo "usage: deploy/envoy/descriptor.sh FILE" >&2
  exit 2
fi
protoc -I"$(dirname "$0")/../../proto" --include_imports \
  --descriptor_set_out="$1" \
  encoderd/v1/encoder.proto google/rpc/error_details.proto
