#include "client/load/report/load_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/load/report/load_warnings.h"
#include "client/load/report/percentiles.h"
#include "client/terminal/table.h"

namespace linserve {
namespace {

double Over(double amount, double count) { return count > 0 ? amount / count : 0; }

void AddRow(const std::string& name, const Histogram& histogram, Table& table) {
  const auto number = [&](double nanoseconds) {
    return histogram.count() == 0 ? "-" : Number(Milliseconds(nanoseconds), 3);
  };
  std::vector<std::string> cells = {name, number(histogram.mean())};
  for (const auto& [label, fraction] : kQuantiles) {
    cells.push_back(Tells(histogram.count(), fraction)
                        ? number(static_cast<double>(histogram.Quantile(fraction)))
                        : "-");
  }
  cells.push_back(number(static_cast<double>(histogram.max())));
  table.Add(std::move(cells));
}

std::string LatencyTable(const LoadReport& report) {
  std::vector<Table::Column> columns = {{"ms", Align::kLeft}, {"mean", Align::kRight}};
  for (const auto& [label, fraction] : kQuantiles) columns.push_back({label, Align::kRight});
  columns.push_back({"max", Align::kRight});
  Table table(std::move(columns));
  AddRow("latency", report.latency, table);
  if (report.open_loop) {
    AddRow("service time", report.service, table);
    AddRow("send lag", report.send_lag, table);
  }
  return table.ToText();
}

nlohmann::json HistogramJson(const Histogram& histogram) {
  nlohmann::json times = {{"mean", Milliseconds(histogram.mean())},
                          {"max", Milliseconds(static_cast<double>(histogram.max()))}};
  for (const auto& [label, fraction] : kQuantiles) {
    times[label] = Milliseconds(static_cast<double>(histogram.Quantile(fraction)));
  }
  return times;
}

// Names the quantiles that there are enough values for.
nlohmann::json ToldJson(const Histogram& histogram) {
  nlohmann::json told = nlohmann::json::array();
  for (const auto& [label, fraction] : kQuantiles) {
    if (Tells(histogram.count(), fraction)) told.push_back(label);
  }
  return told;
}

// Writes the timeline. The measurement took `seconds`, of which the last interval may have only a
// part.
nlohmann::json TimelineJson(const LoadTimeline& timeline, double seconds) {
  const double width = std::chrono::duration<double>(timeline.interval()).count();
  nlohmann::json list = nlohmann::json::array();
  for (const LoadTimeline::Interval& interval : timeline.intervals()) {
    // Where nothing was answered, there is no time that it took.
    const auto time = [&](uint64_t nanoseconds) {
      return interval.answered == 0
                 ? nlohmann::json()
                 : nlohmann::json(Milliseconds(static_cast<double>(nanoseconds)));
    };
    const double begin = static_cast<double>(list.size()) * width;
    const double lasted = std::min(width, seconds - begin);
    constexpr double kLeast = 0.2;  // part of an interval from which on a rate says something
    list.push_back({{"second", begin},
                    {"requests_per_second",
                     lasted < kLeast * width
                         ? nlohmann::json()
                         : nlohmann::json(static_cast<double>(interval.answered) / lasted)},
                    {"answered", interval.answered},
                    {"failed", interval.failed},
                    {"told", ToldJson(interval.latency)},
                    {"p50_ms", time(interval.latency.Quantile(0.5))},
                    {"p90_ms", time(interval.latency.Quantile(0.9))},
                    {"p99_ms", time(interval.latency.Quantile(0.99))},
                    {"max_ms", time(interval.latency.max())},
                    {"batch_sequences", interval.computed > 0
                                            ? nlohmann::json(interval.batch_sequences /
                                                             static_cast<double>(interval.computed))
                                            : nlohmann::json()}});
  }
  return list;
}

// Writes what the server told of a sequence, on average; null where it does not tell.
nlohmann::json ServerJson(const LoadReport& report) {
  if (!report.batch_size()) return {};
  const auto mean = [&](double sum) {
    return Milliseconds(sum / static_cast<double>(report.ok.sequences));
  };
  return {{"queue", mean(report.queue_ns)},
          {"batch", mean(report.batch_ns)},
          {"compute", mean(report.compute_ns)}};
}

nlohmann::json PercentilesJson(const Histogram& histogram) {
  nlohmann::json list = nlohmann::json::array();
  for (const Percentile& percentile : Percentiles(histogram)) {
    list.push_back({percentile.fraction, Milliseconds(static_cast<double>(percentile.value))});
  }
  return list;
}

}  // namespace

bool Tells(uint64_t count, double fraction) {
  constexpr double kLeastBeyond = 3;
  constexpr double kRounding = 1e-6;
  return static_cast<double>(count) * (1 - fraction) + kRounding >= kLeastBeyond;
}

bool IsWhole(const absl::Status& status, const std::vector<SequenceResult>& results) {
  return status.ok() && std::all_of(results.begin(), results.end(),
                                    [](const auto& result) { return result.status.ok(); });
}

void Answered::Add(const std::vector<SequenceResult>& results) {
  if (IsWhole(absl::OkStatus(), results)) ++requests;
  for (const SequenceResult& result : results) {
    if (!result.status.ok()) continue;
    ++sequences;
    tokens += static_cast<uint64_t>(result.tokens);
  }
}

void LoadReport::Record(const absl::Status& status, const std::vector<SequenceResult>& results) {
  ++requests;
  const auto note = [this](std::map<std::string, uint64_t>& errors, const absl::Status& error) {
    ++errors[absl::StatusCodeToString(error.code())];
    if (first_error.empty()) first_error = std::string(error.message());
  };
  if (!status.ok()) return note(request_errors, status);
  ok.Add(results);
  for (const SequenceResult& result : results) {
    if (!result.status.ok()) {
      note(sequence_errors, result.status);
      continue;
    }
    queue_ns += static_cast<double>(result.timing.queue.count());
    batch_ns += static_cast<double>(result.timing.batch.count());
    compute_ns += static_cast<double>(result.timing.compute.count());
    batch_sequences += static_cast<double>(result.timing.batch_sequences);
    if (result.timing.batch_sequences == 0) ++uncomputed;
  }
}

std::string LoadReport::Errors() const {
  std::string text;
  const auto add = [&text](const std::map<std::string, uint64_t>& errors, const char* what) {
    for (const auto& [code, count] : errors) {
      text += (text.empty() ? "" : ", ") + std::to_string(count) + what + code;
    }
  };
  add(request_errors, " requests ");
  add(sequence_errors, " sequences ");
  if (unsent > 0) {
    text += (text.empty() ? "" : ", ") + std::to_string(unsent) +
            " requests not sent, as the client had too many in flight";
  }
  if (!first_error.empty()) text += "; the first one: " + first_error;
  return text;
}

double LoadReport::Rate(uint64_t amount) const {
  return Over(static_cast<double>(amount), seconds);
}

std::optional<double> LoadReport::batch_size() const {
  if (batch_sequences == 0) return std::nullopt;
  return batch_sequences / static_cast<double>(ok.sequences - uncomputed);
}

std::optional<double> LoadReport::cached_share() const {
  if (!server_tells || ok.sequences == 0) return std::nullopt;
  return Over(static_cast<double>(uncomputed), static_cast<double>(ok.sequences));
}

double LoadReport::client_cpu_share() const {
  return Over(client_cpu_seconds, client_seconds * client_cpus);
}

std::string ToText(const LoadReport& report) {
  const auto sequences = static_cast<double>(report.ok.sequences);
  std::string text;
  if (report.interrupted) text += "interrupted; this is what was measured until then\n";
  text += Number(report.seconds, 2) + " s, " + std::to_string(report.ok.requests) + " of " +
          std::to_string(report.requests) + " requests OK\n";
  text += Number(report.Rate(report.within.sequences), 1) + " sequences/s, " +
          Number(report.Rate(report.within.tokens), 0) + " tokens/s, " +
          Number(report.Rate(report.within.requests), 1) + " requests/s\n\n";
  text += LatencyTable(report) + '\n';
  if (const std::optional<double> batch_size = report.batch_size()) {
    text += "server, mean of a sequence: queue " +
            Number(Milliseconds(Over(report.queue_ns, sequences)), 3) + " ms, batch " +
            Number(Milliseconds(Over(report.batch_ns, sequences)), 3) + " ms, compute " +
            Number(Milliseconds(Over(report.compute_ns, sequences)), 3) + " ms, in batches of " +
            Number(*batch_size, 1) + " sequences\n";
  }
  if (const double cached = report.cached_share().value_or(0); cached > 0) {
    text += "the server's cache had " + Number(100 * cached, 1) + " % of the sequences' results\n";
  }
  text += "client: " + Number(Over(report.client_cpu_seconds, report.client_seconds), 2) + " of " +
          std::to_string(report.client_cpus) + " processors";
  if (report.ceiling > 0) {
    text += "; " + Number(100 * report.Rate(report.within.requests) / report.ceiling, 1) +
            " % of the " + Number(report.ceiling, 0) +
            " requests/s that it gets out of a server that does nothing";
  }
  text += '\n';
  if (const std::string errors = report.Errors(); !errors.empty()) {
    text += "failed: " + errors + '\n';
  }
  for (const std::string& warning : Joined({{"", WarningsOf(report)}})) {
    text += "warning: " + warning + '\n';
  }
  return text;
}

nlohmann::json JsonOf(const LoadReport& report) {
  return {
      {"mode", report.open_loop ? "open" : "closed"},
      {"interrupted", report.interrupted},
      {"seconds", report.seconds},
      {"requests", report.requests},
      {"ok_requests", report.ok.requests},
      {"ok_sequences", report.ok.sequences},
      {"tokens", report.ok.tokens},
      {"within",
       {{"requests", report.within.requests},
        {"sequences", report.within.sequences},
        {"tokens", report.within.tokens}}},
      {"sequences_per_second", report.Rate(report.within.sequences)},
      {"tokens_per_second", report.Rate(report.within.tokens)},
      {"requests_per_second", report.Rate(report.within.requests)},
      {"latency_ms", HistogramJson(report.latency)},
      {"latency_told", ToldJson(report.latency)},
      {"latency_percentiles", PercentilesJson(report.latency)},
      {"service_ms", HistogramJson(report.service)},
      {"send_lag_ms", HistogramJson(report.send_lag)},
      {"server_ms", ServerJson(report)},
      {"server_batch_sequences",
       report.batch_size() ? nlohmann::json(*report.batch_size()) : nlohmann::json()},
      {"server_cached_share",
       report.cached_share() ? nlohmann::json(*report.cached_share()) : nlohmann::json()},
      {"request_errors", report.request_errors},
      {"sequence_errors", report.sequence_errors},
      {"unsent", report.unsent},
      {"first_error", report.first_error},
      {"errors", report.Errors()},
      {"client_cpu_seconds", report.client_cpu_seconds},
      {"client_cpu_share", report.client_cpu_share()},
      {"client_ceiling_requests_per_second",
       report.ceiling > 0 ? nlohmann::json(report.ceiling) : nlohmann::json()},
      {"over_time", TimelineJson(report.timeline, report.seconds)},
      {"warnings", Joined({{"", WarningsOf(report)}})},
  };
}

}  // namespace linserve
