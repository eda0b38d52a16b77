#!/usr/bin/env bash
# Prints the rules of deploy/prometheus as objects of the Prometheus Operator:
#   deploy/kubernetes/rules.sh [NAMESPACE] | kubectl apply -f -
set -euo pipefail

if [ $# -gt 1 ] || [[ ! ${1-encoderd} =~ ^[a-z0-9]([a-z0-9-]*[a-z0-9])?$ ]]; then
  echo "usage: rules.sh [NAMESPACE], by default encoderd" >&2
  exit 2
fi
unset CDPATH
cd "$(dirname "$0")/../prometheus"

for kind in rules alerts; do
  cat << END
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: encoderd-$kind
  namespace: "${1-encoderd}"
  labels:
    app.kubernetes.io/name: encoderd
spec:
END
  sed 's/^./  &/' "encoderd.$kind.yml"
done
