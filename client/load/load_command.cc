#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <utility>

#include "client/commands/commands.h"
#include "client/load/load_arguments.h"
#include "client/load/load_output.h"
#include "client/load/load_subject.h"
#include "client/load/load_trace.h"
#include "client/load/report/objective.h"
#include "core/status/retry_delay.h"
#include "core/workload/lengths.h"

namespace linserve {
namespace {

std::atomic<bool> interrupted = false;

// Ends the load at the first signal, and the program at the second one.
extern "C" void OnInterrupt(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);
}

// Parses a subject of --against: PROTOCOL, TARGET or PROTOCOL@TARGET; what is left out is the first
// subject's.
ClientOptions OtherOptions(const std::string& text, ClientOptions options) {
  const size_t at = text.find('@');
  const auto protocol = ProtocolFromName(text.substr(0, at));
  options.protocol = protocol.value_or(options.protocol);
  if (!protocol) {
    options.target = text;
  } else if (at != std::string::npos) {
    options.target = text.substr(at + 1);
  }
  return options;
}

std::string NameOf(const ClientOptions& options) {
  return options.target + (options.protocol == Protocol::kOip ? " (oip)" : "");
}

absl::StatusOr<std::vector<LoadSubject>> Connect(const GlobalOptions& globals,
                                                 const LoadArguments& arguments) {
  ClientOptions options = globals.ToClientOptions();
  if (arguments.deadline.count() > 0) options.async_timeout = arguments.deadline;
  std::vector<ClientOptions> all = {options};
  for (const std::string& text : arguments.against) all.push_back(OtherOptions(text, options));
  std::vector<LoadSubject> subjects;
  for (const ClientOptions& one : all) {
    std::string name = NameOf(one);
    const bool taken = std::any_of(subjects.begin(), subjects.end(),
                                   [&](const LoadSubject& other) { return other.name() == name; });
    if (taken) name += " (" + std::to_string(subjects.size() + 1) + ")";
    auto subject = LoadSubject::Connect(std::move(name), one, arguments.connections,
                                        arguments.choice.model, arguments.choice.version);
    if (!subject.ok() && all.size() > 1) return WithPrefix(subject.status(), NameOf(one) + ": ");
    if (!subject.ok()) return subject.status();
    subjects.push_back(*std::move(subject));
  }
  return subjects;
}

absl::Status Prepare(const LoadArguments& arguments, const std::vector<TracedRequest>& trace,
                     std::vector<LoadSubject>& subjects) {
  for (LoadSubject& subject : subjects) {
    absl::Status status;
    if (trace.empty()) {
      const auto lengths = LengthDistribution::Parse(arguments.LengthsFor(subject.model()));
      status = lengths.ok() ? subject.Prepare(*lengths, arguments.input) : lengths.status();
    } else {
      status = subject.Prepare(trace, arguments.input);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Measures how much the client could measure, with as many requests in flight as the load has at
// most, or 32 if that is more.
absl::Status MeasureCeilings(const LoadArguments& arguments, std::vector<LoadSubject>& subjects) {
  constexpr size_t kMany = 32;
  LoadOptions options;
  options.warmup = std::chrono::milliseconds(300);
  options.duration = std::chrono::seconds(1);
  options.concurrency = std::max(kMany, arguments.concurrencies.back());
  for (LoadSubject& subject : subjects) {
    std::fprintf(stderr, "the client's ceiling for %s\n", subject.name().c_str());
    absl::Status status = subject.MeasureCeiling(options, interrupted);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Puts on the loads one after the other, each on all subjects in turn.
void MeasureAll(const LoadArguments& arguments, const std::vector<TracedRequest>& trace,
                std::vector<LoadSubject>& subjects) {
  LoadOptions options;
  options.duration = std::chrono::ceil<std::chrono::nanoseconds>(arguments.duration);
  options.requests = arguments.requests;
  options.warmup = std::chrono::ceil<std::chrono::nanoseconds>(arguments.warmup);
  options.seed = arguments.input.seed;
  for (const TracedRequest& request : trace) options.times.push_back(request.time);
  const bool open = !arguments.rates.empty();
  const size_t count = open ? arguments.rates.size() : arguments.concurrencies.size();
  const size_t loads = trace.empty() ? count : 1;
  for (size_t i = 0; i < loads; ++i) {
    options.rate = open ? arguments.rates[i] : 0;
    options.concurrency = arguments.concurrencies[open ? 0 : i];
    const double load = !trace.empty() ? MeanRate(trace)
                        : open         ? options.rate
                                       : static_cast<double>(options.concurrency);
    for (LoadSubject& subject : subjects) {
      if (interrupted && !subjects[0].steps().empty()) {
        std::fprintf(stderr, "interrupted: load %zu of %zu is the last that was begun\n",
                     subjects[0].steps().size(), loads);
        return;
      }
      if (loads * subjects.size() > 1) {
        std::fprintf(stderr, "load %zu of %zu on %s\n", i + 1, loads, subject.name().c_str());
      }
      subject.Measure(load, options, interrupted);
    }
  }
}

// Returns the exit code: whether the measurement went as it should, on each of the subjects.
int ExitCode(const std::vector<LoadSubject>& subjects, const std::vector<Objective>& objectives) {
  constexpr int kObjectiveMissed = 3;
  // An interrupted load did not show whether it keeps to the objectives to the end.
  if (interrupted && !objectives.empty()) return EXIT_FAILURE;
  for (const LoadSubject& subject : subjects) {
    if (!objectives.empty() && BestOf(subject.steps(), objectives) == nullptr) {
      return kObjectiveMissed;
    }
  }
  int code = EXIT_SUCCESS;
  std::fflush(stdout);  // what follows is the last line
  for (const LoadSubject& subject : subjects) {
    const std::string failure = objectives.empty() ? FailureOf(subject.steps()) : "";
    if (failure.empty()) continue;
    std::fprintf(stderr, "linserve-client: %s: %s\n", subject.name().c_str(), failure.c_str());
    code = EXIT_FAILURE;
  }
  return code;
}

absl::StatusOr<std::vector<Objective>> Objectives(const std::vector<std::string>& texts) {
  std::vector<Objective> objectives;
  for (const std::string& text : texts) {
    auto objective = Objective::Parse(text);
    if (!objective.ok()) return objective.status();
    objectives.push_back(*std::move(objective));
  }
  return objectives;
}

// Says what was measured, for the head of the page.
std::string WhatOf(const LoadArguments& arguments, const LoadSubject& subject) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  std::array<char, 32> when{};
  std::strftime(when.data(), when.size(), "%F %R UTC", gmtime_r(&now, &utc));
  std::string what = std::string(when.data()) + ", model " + subject.model().name;
  if (!arguments.trace.empty()) return what + ", the trace " + arguments.trace;
  const size_t sequences = arguments.input.sequences;
  what += ", " + (sequences == 1 ? "one sequence" : std::to_string(sequences) + " sequences");
  what += " a request, lengths " + arguments.LengthsFor(subject.model());
  return what + (arguments.rates.empty()
                     ? ", each answer sends the next request (closed loop)"
                     : ", sent at random times whatever the answers do (open loop)");
}

template <typename T>
void SortAndUnique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

int RunLoad(const GlobalOptions& globals, LoadArguments arguments) {
  SortAndUnique(arguments.rates);
  SortAndUnique(arguments.concurrencies);
  arguments.outputs.sweep = std::max(arguments.rates.size(), arguments.concurrencies.size()) > 1;
  if (const absl::Status status = CheckOutputs(arguments.outputs); !status.ok()) {
    return FailWith(status);
  }
  const auto objectives = Objectives(arguments.objectives);
  if (!objectives.ok()) return FailWith(objectives.status());
  std::vector<TracedRequest> trace;
  if (!arguments.trace.empty()) {
    auto read = ReadTrace(arguments.trace);
    if (!read.ok()) return FailWith(read.status());
    trace = *std::move(read);
  }
  auto subjects = Connect(globals, arguments);
  if (!subjects.ok()) return FailWith(subjects.status());
  arguments.input.options = arguments.choice.ToOutputOptions(subjects->front().model());
  arguments.input.priority = PriorityFromLevel(arguments.choice.priority);
  arguments.input.version = arguments.choice.version;
  absl::Status status = Prepare(arguments, trace, *subjects);
  if (!status.ok()) return FailWith(status);
  std::signal(SIGINT, OnInterrupt);
  std::signal(SIGTERM, OnInterrupt);
  if (arguments.ceiling) status = MeasureCeilings(arguments, *subjects);
  if (!status.ok()) return FailWith(status);
  MeasureAll(arguments, trace, *subjects);
  status =
      WriteLoad(*subjects, *objectives, WhatOf(arguments, subjects->front()), arguments.outputs);
  return status.ok() ? ExitCode(*subjects, *objectives) : FailWith(status);
}

}  // namespace

void AddLoadCommand(CLI::App& app, const GlobalOptions& globals, ChosenCommand& chosen) {
  CLI::App* load = app.add_subcommand("load", "Put load on a server and measure it");
  load->footer(
      "Examples:\n"
      "  linserve-client load --concurrency 32                 how much can it take?\n"
      "  linserve-client load --rate 200 --duration 60         how long do callers wait at 200/s?\n"
      "  linserve-client load --rate 50,100,200,400 --slo p99=20ms   how much can it take in "
      "time?\n"
      "  linserve-client load --lengths lognormal:96,0.8,8,512 --sequences 8\n"
      "  linserve-client load --requests 1000 --json report.json\n"
      "  linserve-client load --concurrency 1,8,32 --against oip --html report.html\n"
      "  linserve-client load --trace yesterday.txt --against 127.0.0.1:8600\n"
      "  linserve-client load --concurrency 64 --ceiling       is it the server that is measured?\n"
      "Rates are of the answers that came within the measurement, latencies of the requests that\n"
      "were due in it. Ctrl-C ends it early and reports what was measured. Failed requests are\n"
      "counted by code. The exit code is 1 if more than half of them fail, or 3 if the load does "
      "not\n"
      "keep to what --slo asks for.");
  auto arguments = std::make_shared<LoadArguments>();
  arguments->AddTo(*load);
  load->callback([&globals, &chosen, arguments] {
    chosen = [&globals, arguments] { return RunLoad(globals, *arguments); };
  });
}

}  // namespace linserve
