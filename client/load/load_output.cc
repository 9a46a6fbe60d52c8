#include "client/load/load_output.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/files/outputs.h"
#include "client/load/load_page.h"
#include "client/load/report/percentiles.h"
#include "client/terminal/table.h"
#include "core/files/file.h"
#include "core/json/json_text.h"

namespace linserve {
namespace {

// Says who was measured, as far as the server tells.
std::string ServerText(const ModelDescription& model) {
  std::vector<std::string> parts = {
      model.server_version.empty() ? "" : "linserve " + model.server_version, model.architecture,
      model.dtype.empty() ? "" : "in " + absl::AsciiStrToLower(model.dtype),
      model.threads == 0 ? ""
                         : absl::StrCat("replicas: ", model.replicas,
                                        ", threads of each at most: ", model.threads),
      model.processor.empty() ? "" : "on " + model.processor};
  std::erase(parts, "");
  return absl::StrJoin(parts, ", ");
}

nlohmann::json ServerJson(const ModelDescription& model) {
  return {{"version", model.server_version},
          {"architecture", model.architecture},
          {"dtype", model.dtype},
          {"replicas", model.replicas},
          {"threads", model.threads},
          {"processor", model.processor},
          {"text", ServerText(model)}};
}

std::string ServerLine(const LoadSubject& subject) {
  const std::string server = ServerText(subject.model());
  return server.empty() ? "" : "server: " + server + '\n';
}

std::string TextOf(const std::vector<SweepStep>& steps, const std::vector<Objective>& objectives) {
  if (steps.size() > 1) return ToText(steps, objectives);
  std::string text = ToText(steps[0].report);
  for (const Objective& objective : objectives) {
    text += "objective " + objective.Verdict(steps[0].report) + '\n';
  }
  return text;
}

nlohmann::json ReportOf(const LoadSubject& subject, const std::vector<Objective>& objectives,
                        bool sweep) {
  nlohmann::json all = JsonOf(subject.steps(), objectives);
  all["server"] = ServerJson(subject.model());
  if (sweep) return all;
  nlohmann::json only = std::move(all["steps"][0]);
  only["objectives"] = std::move(all["objectives"]);
  only["server"] = std::move(all["server"]);
  return only;
}

std::string Ratio(double value, double first) {
  return first > 0 && value > 0 ? Number(value / first, 3) + "x" : "-";
}

// Writes what the other subjects measured, as multiples of what the first one did.
std::string Comparison(const std::vector<LoadSubject>& subjects) {
  Table table({{"over " + subjects[0].name(), Align::kLeft},
               {"load", Align::kRight},
               {"requests/s", Align::kRight},
               {"tokens/s", Align::kRight},
               {"p50", Align::kRight},
               {"p99", Align::kRight}});
  for (size_t i = 1; i < subjects.size(); ++i) {
    const size_t steps = std::min(subjects[0].steps().size(), subjects[i].steps().size());
    for (size_t step = 0; step < steps; ++step) {
      const LoadReport& first = subjects[0].steps()[step].report;
      const LoadReport& own = subjects[i].steps()[step].report;
      const auto quantile = [&](double fraction) -> std::string {
        const bool told =
            Tells(own.latency.count(), fraction) && Tells(first.latency.count(), fraction);
        if (!told) return "-";
        return Ratio(static_cast<double>(own.latency.Quantile(fraction)),
                     static_cast<double>(first.latency.Quantile(fraction)));
      };
      if (first.interrupted || own.interrupted) continue;
      table.Add({subjects[i].name(), Load(subjects[0].steps()[step]),
                 Ratio(own.Rate(own.within.requests), first.Rate(first.within.requests)),
                 Ratio(own.Rate(own.within.tokens), first.Rate(first.within.tokens)), quantile(0.5),
                 quantile(0.99)});
    }
  }
  return table.ToText();
}

// Writes one file for each table, because HdrHistogram's plotters read one table a file.
absl::Status WritePercentiles(const std::vector<LoadSubject>& subjects,
                              const LoadOutputs& outputs) {
  const std::filesystem::path path = outputs.percentiles;
  absl::Status status;
  for (size_t i = 0; i < subjects.size(); ++i) {
    for (const SweepStep& step : subjects[i].steps()) {
      std::string name = path.stem().string();
      if (subjects.size() > 1) name += '-' + std::to_string(i + 1);
      if (outputs.sweep) name += absl::StrCat("-", step.load);
      name += path.extension().string();
      status.Update(ReplaceFile(path.parent_path() / name, {PercentileTable(step.report.latency)}));
    }
  }
  return status;
}

}  // namespace

std::string ToText(const std::vector<LoadSubject>& subjects,
                   const std::vector<Objective>& objectives) {
  if (subjects.size() == 1) {
    return ServerLine(subjects[0]) + TextOf(subjects[0].steps(), objectives);
  }
  std::string text;
  for (const LoadSubject& subject : subjects) {
    if (subject.steps().empty()) continue;
    text +=
        subject.name() + "\n" + ServerLine(subject) + TextOf(subject.steps(), objectives) + '\n';
  }
  return text + Comparison(subjects);
}

std::string ToJson(const std::vector<LoadSubject>& subjects,
                   const std::vector<Objective>& objectives, const std::string& what, bool sweep) {
  if (subjects.size() == 1) {
    nlohmann::json report = ReportOf(subjects[0], objectives, sweep);
    report["what"] = what;
    return JsonText(report, 2);
  }
  nlohmann::json list = nlohmann::json::array();
  for (const LoadSubject& subject : subjects) {
    if (subject.steps().empty()) continue;
    list.push_back({{"name", subject.name()}, {"report", ReportOf(subject, objectives, sweep)}});
  }
  return JsonText({{"what", what}, {"subjects", list}}, 2);
}

std::string ToHtml(const std::vector<LoadSubject>& subjects,
                   const std::vector<Objective>& objectives, const std::string& what) {
  nlohmann::json list = nlohmann::json::array();
  std::vector<NamedWarnings> warnings;
  for (const LoadSubject& subject : subjects) {
    if (subject.steps().empty()) continue;
    list.push_back(ReportOf(subject, objectives, /*sweep=*/true));
    list.back()["name"] = subject.name();
    const std::string name = subjects.size() > 1 ? subject.name() : "";
    for (NamedWarnings& one : WarningsOf(subject.steps(), name)) warnings.push_back(std::move(one));
  }
  nlohmann::json wanted = nlohmann::json::array();
  for (const Objective& objective : objectives) {
    wanted.push_back(
        {{"text", objective.text}, {"measure", objective.measure}, {"most", objective.most}});
  }
  std::string report = JsonText({{"what", what},
                                 {"open_loop", subjects[0].steps()[0].report.open_loop},
                                 {"objectives", std::move(wanted)},
                                 {"warnings", Joined(warnings)},
                                 {"subjects", std::move(list)}});
  // No text of the report may look like the end of the page's script.
  for (size_t at = 0; (at = report.find('<', at)) != std::string::npos;) {
    report.replace(at, 1, "\\u003c");
  }
  constexpr std::string_view kPlace = "%REPORT%";
  std::string page = kLoadPage;
  return page.replace(page.find(kPlace), kPlace.size(), report);
}

absl::Status CheckOutputs(const LoadOutputs& outputs) {
  for (const std::string& path :
       {outputs.json == "-" ? "" : outputs.json, outputs.html, outputs.percentiles}) {
    if (absl::Status status = CheckWritable(path); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status WriteLoad(const std::vector<LoadSubject>& subjects,
                       const std::vector<Objective>& objectives, const std::string& what,
                       const LoadOutputs& outputs) {
  const std::string as_json =
      outputs.json.empty() ? "" : ToJson(subjects, objectives, what, outputs.sweep) + '\n';
  const bool json_only = outputs.json == "-";
  std::fputs(json_only ? as_json.c_str() : ToText(subjects, objectives).c_str(), stdout);
  absl::Status status;
  if (!as_json.empty() && !json_only) status.Update(ReplaceFile(outputs.json, {as_json}));
  if (!outputs.html.empty())
    status.Update(ReplaceFile(outputs.html, {ToHtml(subjects, objectives, what)}));
  if (!outputs.percentiles.empty()) status.Update(WritePercentiles(subjects, outputs));
  return status;
}

}  // namespace linserve
