#!/usr/bin/env bash
# Prints the rules of deploy/prometheus as objects of the Prometheus Operator:
#   deploy/kubernetes/rules.sh | kubectl apply -f -
set -euo pipefail
cd "$(dirname "$0")/../prometheus"

for kind in rules alerts; do
  cat << END
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: encoderd-$kind
  namespace: encoderd
  labels:
    app.kubernetes.io/name: encoderd
spec:
END
  sed 's/^./  &/' "encoderd.$kind.yml"
done
