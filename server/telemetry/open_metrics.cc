#include "telemetry/open_metrics.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

namespace linserve {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr std::string_view kTotal = "_total";

// Writes a number as short as it can be; whole ones have a point, since bounds of buckets must be
// written in one way.
std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e6);
  constexpr size_t kLongest = 32;
  char text[kLongest];
  const auto form = plain ? std::chars_format::fixed : std::chars_format::scientific;
  std::string number(text, std::to_chars(text, text + kLongest, value, form).ptr);
  if (plain && number.find('.') == std::string::npos) number += ".0";
  return number;
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// Returns "{a="1",b="2"}", with the bound of a bucket last where there is one.
std::string LabelsOf(const ClientMetric& metric, const std::string& bound = "") {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& value) {
    text += (text.empty() ? "{" : ",") + name + "=\"" + Escaped(value) + "\"";
  };
  for (const auto& label : metric.label) add(label.name, label.value);
  if (!bound.empty()) add("le", bound);
  return text.empty() ? "" : text + "}";
}

const char* TypeOf(MetricType type) {
  switch (type) {
    case MetricType::Counter:
      return "counter";
    case MetricType::Histogram:
      return "histogram";
    case MetricType::Gauge:
      return "gauge";
    default:
      return "unknown";
  }
}

// Returns the exemplars of the buckets of a series; null if there are none.
const std::vector<Exemplar>* ExemplarsOf(const Exemplars& exemplars, const std::string& family,
                                         const ClientMetric& metric) {
  const auto of_family = exemplars.find(family);
  if (of_family == exemplars.end()) return nullptr;
  SeriesLabels labels;
  for (const auto& label : metric.label) labels[label.name] = label.value;
  const auto found = of_family->second.find(labels);
  return found == of_family->second.end() ? nullptr : &found->second;
}

std::string TextOf(const Exemplar& exemplar) {
  return " # {trace_id=\"" + exemplar.trace_id + "\"} " + Number(exemplar.value) + " " +
         Number(exemplar.unix_time);
}

void AddHistogram(const std::string& name, const ClientMetric& metric,
                  const std::vector<Exemplar>* exemplars, std::string& text) {
  const auto add = [&](const std::string& suffix, const std::string& labels,
                       const std::string& value) { text += name + suffix + labels + " " + value; };
  const auto& buckets = metric.histogram.bucket;
  for (size_t i = 0; i < buckets.size(); ++i) {
    add("_bucket", LabelsOf(metric, Number(buckets[i].upper_bound)),
        std::to_string(buckets[i].cumulative_count));
    const bool shown = exemplars != nullptr && !exemplars->at(i).trace_id.empty();
    text += (shown ? TextOf(exemplars->at(i)) : "") + "\n";
  }
  add("_count", LabelsOf(metric), std::to_string(metric.histogram.sample_count) + "\n");
  add("_sum", LabelsOf(metric), Number(metric.histogram.sample_sum) + "\n");
}

}  // namespace

std::string ToOpenMetrics(const std::vector<MetricFamily>& families, const Exemplars& exemplars) {
  std::string text;
  for (const MetricFamily& family : families) {
    const bool counts = family.type == MetricType::Counter;
    // A counter's series end in "_total" here. One with another name has no type, lest it change.
    const bool counter = counts && family.name.ends_with(kTotal);
    std::string name = family.name;
    if (counter) name.erase(name.size() - kTotal.size());
    text += "# TYPE " + name + " " + (counts && !counter ? "unknown" : TypeOf(family.type)) + "\n";
    text += "# HELP " + name + " " + Escaped(family.help) + "\n";
    for (const ClientMetric& metric : family.metric) {
      if (family.type == MetricType::Histogram) {
        AddHistogram(name, metric, ExemplarsOf(exemplars, name, metric), text);
        continue;
      }
      const double value = counts ? metric.counter.value : metric.gauge.value;
      text += name;
      if (counter) text += kTotal;
      text += LabelsOf(metric) + " " + Number(value) + "\n";
    }
  }
  return text + "# EOF\n";
}

}  // namespace linserve
