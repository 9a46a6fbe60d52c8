#include "client/load/load_sweep.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/terminal/table.h"

namespace linserve {
namespace {

double Power(const LoadReport& report) {
  const double latency = report.latency.mean();
  return latency > 0 ? report.Rate(report.within.requests) / latency : 0;
}

bool MeetsAll(const LoadReport& report, const std::vector<Objective>& objectives) {
  return std::all_of(objectives.begin(), objectives.end(),
                     [&](const Objective& objective) { return objective.Met(report); });
}

std::string MilliSeconds(const LoadReport& report, double quantile) {
  if (!Tells(report.latency.count(), quantile)) return "-";
  return Number(static_cast<double>(report.latency.Quantile(quantile)) / 1e6, 2);
}

}  // namespace

std::string Load(const SweepStep& step) {
  return Number(step.load, step.load < 10 && step.report.open_loop ? 2 : 0);
}

std::optional<size_t> KneeOf(const std::vector<SweepStep>& steps) {
  const auto power = [](const LoadReport& report) {
    return report.interrupted ? 0 : Power(report);
  };
  const auto knee = std::max_element(
      steps.begin(), steps.end(),
      [&](const SweepStep& a, const SweepStep& b) { return power(a.report) < power(b.report); });
  if (knee == steps.end() || power(knee->report) == 0) return std::nullopt;
  return static_cast<size_t>(knee - steps.begin());
}

std::string FailureOf(const std::vector<SweepStep>& steps) {
  uint64_t requests = 0;
  uint64_t failed = 0;
  for (const SweepStep& step : steps) {
    requests += step.report.requests;
    failed += step.report.failed();
  }
  if (requests == 0) return "no request was answered";
  if (2 * failed <= requests) return "";
  return std::to_string(failed) + " of " + std::to_string(requests) + " requests failed";
}

const SweepStep* BestOf(const std::vector<SweepStep>& steps,
                        const std::vector<Objective>& objectives) {
  // Where there are several steps, one that was interrupted says nothing.
  const auto missed = std::find_if(steps.begin(), steps.end(), [&](const SweepStep& step) {
    return (steps.size() > 1 && step.report.interrupted) || !MeetsAll(step.report, objectives);
  });
  return missed == steps.begin() ? nullptr : &*std::prev(missed);
}

std::string ToText(const std::vector<SweepStep>& steps, const std::vector<Objective>& objectives) {
  const bool open = steps[0].report.open_loop;
  const std::string unit = open ? "/s" : " in flight";
  Table table({{open ? "offered/s" : "in flight", Align::kRight},
               {"requests/s", Align::kRight},
               {"tokens/s", Align::kRight},
               {"p50 ms", Align::kRight},
               {"p90 ms", Align::kRight},
               {"p99 ms", Align::kRight},
               {"batch", Align::kRight},
               {"cached", Align::kRight},
               {"failed", Align::kRight},
               {"", Align::kLeft}});
  const std::optional<size_t> knee = KneeOf(steps);
  std::string errors;
  for (size_t i = 0; i < steps.size(); ++i) {
    const LoadReport& report = steps[i].report;
    table.Add({Load(steps[i]), Number(report.Rate(report.within.requests), 1),
               Number(report.Rate(report.within.tokens), 0), MilliSeconds(report, 0.5),
               MilliSeconds(report, 0.9), MilliSeconds(report, 0.99),
               report.batch_size() ? Number(*report.batch_size(), 1) : "-",
               report.cached_share() ? Number(100 * *report.cached_share(), 0) + " %" : "-",
               std::to_string(report.failed()),
               std::string(i == knee ? "knee" : "") + (report.interrupted ? " interrupted"
                                                       : MeetsAll(report, objectives)
                                                           ? ""
                                                           : " misses an objective")});
    if (!report.Errors().empty()) {
      errors += "failed at " + Load(steps[i]) + ": " + report.Errors() + '\n';
    }
  }
  std::string text = table.ToText() + '\n';
  if (knee)
    text += "knee: " + Load(steps[*knee]) + unit + ", the most throughput for its latency\n";
  if (!objectives.empty()) {
    const SweepStep* best = BestOf(steps, objectives);
    text += best == nullptr ? "the smallest load already misses an objective\n"
                            : "objectives are met up to " + Load(*best) + unit + '\n';
  }
  text += errors;
  for (const std::string& warning : Joined(WarningsOf(steps))) text += "warning: " + warning + '\n';
  return text;
}

std::vector<NamedWarnings> WarningsOf(const std::vector<SweepStep>& steps,
                                      const std::string& subject) {
  std::vector<NamedWarnings> all;
  for (const SweepStep& step : steps) {
    const std::string load =
        steps.size() == 1 ? "" : Load(step) + (step.report.open_loop ? "/s" : " in flight");
    const std::string between = load.empty() || subject.empty() ? "" : ", ";
    all.push_back({load + between + subject, WarningsOf(step.report)});
  }
  return all;
}

nlohmann::json JsonOf(const std::vector<SweepStep>& steps,
                      const std::vector<Objective>& objectives) {
  nlohmann::json list = nlohmann::json::array();
  for (const SweepStep& step : steps) {
    nlohmann::json report = JsonOf(step.report);
    report["load"] = step.load;
    report["meets_objectives"] = MeetsAll(step.report, objectives);
    list.push_back(std::move(report));
  }
  nlohmann::json texts = nlohmann::json::array();
  for (const Objective& objective : objectives) texts.push_back(objective.text);
  const SweepStep* best = BestOf(steps, objectives);
  const std::optional<size_t> knee = KneeOf(steps);
  return {{"steps", list},
          {"knee", knee ? nlohmann::json(steps[*knee].load) : nlohmann::json()},
          {"objectives", texts},
          {"best", best == nullptr ? nlohmann::json() : nlohmann::json(best->load)}};
}

}  // namespace linserve
