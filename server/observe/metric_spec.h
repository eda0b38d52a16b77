// How metrics are created: turns a name, a help text and labels into a handle
// that the registry owns. For metrics.cc and server_metrics.cc.
#ifndef ENCODERD_SERVER_OBSERVE_METRIC_SPEC_H_
#define ENCODERD_SERVER_OBSERVE_METRIC_SPEC_H_

#include <map>
#include <string>

#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace encoderd {

struct MetricSpec {
  const char* name;
  const char* help;
};

using MetricLabels = std::map<std::string, std::string>;

template <typename Builder>
auto& Family(Builder builder, const MetricSpec& spec,
             prometheus::Registry& to) {
  return builder.Name(spec.name).Help(spec.help).Register(to);
}

inline prometheus::Counter* Counter(const MetricSpec& spec,
                                    prometheus::Registry& to,
                                    const MetricLabels& labels = {}) {
  return &Family(prometheus::BuildCounter(), spec, to).Add(labels);
}

inline prometheus::Gauge* Gauge(const MetricSpec& spec,
                                prometheus::Registry& to,
                                const MetricLabels& labels = {}) {
  return &Family(prometheus::BuildGauge(), spec, to).Add(labels);
}

inline prometheus::Histogram* Histogram(
    const MetricSpec& spec, prometheus::Registry& to,
    const prometheus::Histogram::BucketBoundaries& buckets,
    const MetricLabels& labels) {
  return &Family(prometheus::BuildHistogram(), spec, to).Add(labels, buckets);
}

}  // namespace encoderd

#endif  // ENCODERD_SERVER_OBSERVE_METRIC_SPEC_H_
