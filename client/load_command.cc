#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <utility>

#include "client/commands.h"
#include "client/load_output.h"
#include "client/load_subject.h"
#include "client/load_trace.h"
#include "client/objective.h"
#include "core/lengths.h"
#include "core/retry_delay.h"

namespace linserve {
namespace {

std::atomic<bool> interrupted = false;

// The first signal ends the load, a second one the program.
extern "C" void OnInterrupt(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);
}

struct LoadArguments {
  ModelChoice choice;
  std::string lengths;
  std::string trace;
  LoadInputOptions input;
  std::vector<size_t> concurrencies = {LoadOptions().concurrency};
  std::vector<double> rates;
  std::vector<std::string> against;
  std::vector<std::string> objectives;
  double duration_s = 10;
  double warmup_s = 1;
  uint64_t requests = 0;
  int64_t deadline_ms = 0;
  size_t connections = 1;
  bool ceiling = false;
  LoadOutputs outputs;
};

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::nanoseconds(std::llround(seconds * 1e9));
}

// As asked for, else 128 or the longest that the model takes.
std::string LengthsOf(const LoadArguments& arguments, const ModelDescription& model) {
  if (!arguments.lengths.empty()) return arguments.lengths;
  int64_t length = 128;
  for (const LengthLimit& limit : model.signature.limits) length = std::min(length, limit.longest);
  return "fixed:" + std::to_string(std::max<int64_t>(length, 1));
}

// A subject of --against: PROTOCOL, TARGET or PROTOCOL@TARGET; what is left out is the first one's.
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
  if (arguments.deadline_ms > 0) {
    options.async_timeout = std::chrono::milliseconds(arguments.deadline_ms);
  }
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
      const auto lengths = LengthDistribution::Parse(LengthsOf(arguments, subject.model()));
      status = lengths.ok() ? subject.Prepare(*lengths, arguments.input) : lengths.status();
    } else {
      status = subject.Prepare(trace, arguments.input);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// How much the client could measure, with as many requests in flight as ever, or many.
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

// The loads one after the other, each on all subjects in turn.
void MeasureAll(const LoadArguments& arguments, const std::vector<TracedRequest>& trace,
                std::vector<LoadSubject>& subjects) {
  LoadOptions options;
  options.duration = Seconds(arguments.duration_s);
  options.requests = arguments.requests;
  options.warmup = Seconds(arguments.warmup_s);
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

// The last word of a measurement: whether it went as it should, on each of the subjects.
int ExitCode(const std::vector<LoadSubject>& subjects, const std::vector<Objective>& objectives) {
  constexpr int kObjectiveMissed = 3;
  int code = EXIT_SUCCESS;
  for (const LoadSubject& subject : subjects) {
    const std::vector<SweepStep>& steps = subject.steps();
    const bool any = std::any_of(steps.begin(), steps.end(), [](const SweepStep& step) {
      return step.report.ok.sequences > 0;
    });
    if (!any) return EXIT_FAILURE;
    if (BestOf(steps, objectives) == nullptr) code = kObjectiveMissed;
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

// For the head of the page.
std::string WhatOf(const LoadArguments& arguments, const LoadSubject& subject) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  std::array<char, 32> when{};
  std::strftime(when.data(), when.size(), "%F %R UTC", gmtime_r(&now, &utc));
  std::string what = std::string(when.data()) + ", model " + subject.model().name;
  if (!arguments.trace.empty()) return what + ", the trace " + arguments.trace;
  const size_t sequences = arguments.input.sequences;
  what += ", " + (sequences == 1 ? "one sequence" : std::to_string(sequences) + " sequences");
  what += " a request, lengths " + LengthsOf(arguments, subject.model());
  return what + (arguments.rates.empty()
                     ? ", each answer sends the next request (closed loop)"
                     : ", sent at random times whatever the answers do (open loop)");
}

// So that what is wrong with an argument is said before anything is asked of a server.
template <typename Parsed>
CLI::Validator Parses(absl::StatusOr<Parsed> (*parse)(const std::string&)) {
  return CLI::Validator(
      [parse](const std::string& text) { return std::string(parse(text).status().message()); }, "");
}

const CLI::Validator kNoDash(
    [](const std::string& path) {
      return path == "-" ? "expected a file; - is for --json alone" : "";
    },
    "");

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
    return Fail(status);
  }
  const auto objectives = Objectives(arguments.objectives);
  if (!objectives.ok()) return Fail(objectives.status());
  std::vector<TracedRequest> trace;
  if (!arguments.trace.empty()) {
    auto read = ReadTrace(arguments.trace);
    if (!read.ok()) return Fail(read.status());
    trace = *std::move(read);
  }
  auto subjects = Connect(globals, arguments);
  if (!subjects.ok()) return Fail(subjects.status());
  arguments.input.options = arguments.choice.ToOutputOptions();
  arguments.input.priority = PriorityFromLevel(arguments.choice.priority);
  arguments.input.version = arguments.choice.version;
  absl::Status status = Prepare(arguments, trace, *subjects);
  if (!status.ok()) return Fail(status);
  std::signal(SIGINT, OnInterrupt);
  std::signal(SIGTERM, OnInterrupt);
  if (arguments.ceiling) status = MeasureCeilings(arguments, *subjects);
  if (!status.ok()) return Fail(status);
  MeasureAll(arguments, trace, *subjects);
  status =
      WriteLoad(*subjects, *objectives, WhatOf(arguments, subjects->front()), arguments.outputs);
  return status.ok() ? ExitCode(*subjects, *objectives) : Fail(status);
}

void AddLoopOptions(CLI::App& load, LoadArguments& arguments) {
  CLI::Option* concurrency =
      load.add_option("--concurrency", arguments.concurrencies,
                      "Closed loop: requests always in flight, each answer sends the next; several "
                      "(1,2,4,8) are measured one after the other, for the knee")
          ->delimiter(',')
          ->check(CLI::Range(1, 100000))
          ->capture_default_str();
  CLI::Option* rate =
      load.add_option(
              "--rate", arguments.rates,
              "Open loop: requests a second at random (Poisson) times, whatever the answers "
              "do; the latency then counts from when a request should have been sent; or "
              "several, likewise")
          ->delimiter(',')
          ->check(CLI::Range(1e-3, 1e6))
          ->excludes(concurrency);
  CLI::Option* duration = load.add_option("--duration", arguments.duration_s, "Seconds to measure")
                              ->check(CLI::Range(0.001, 1e6))
                              ->capture_default_str();
  CLI::Option* requests =
      load.add_option("--requests", arguments.requests, "Measure so many requests instead")
          ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 50))
          ->excludes(duration);
  CLI::Option* trace =
      load.add_option(
              "--trace", arguments.trace,
              "Open loop: a file with a line \"SECONDS LENGTH\" for each request, sent at its "
              "time; all of it is measured")
          ->check(CLI::ExistingFile)
          ->excludes(concurrency)
          ->excludes(rate)
          ->excludes(duration)
          ->excludes(requests);
  load.add_option(
          "--against", arguments.against,
          "Put the same load on another server in turns, and compare: its TARGET, a PROTOCOL "
          "(linserve, oip) to ask the same server by, or PROTOCOL@TARGET. May be repeated")
      ->allow_extra_args(false);
  load.add_option(
          "--warmup", arguments.warmup_s,
          "Seconds of the same load before, not measured; longer than a request takes, lest "
          "the rates begin at zero")
      ->check(CLI::Range(0.0, 1e6))
      ->excludes(trace)
      ->capture_default_str();
  load.add_option("--connections", arguments.connections, "Connections, used in turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  load.add_flag("--ceiling", arguments.ceiling,
                "First measure what the client gets out of a server that does nothing, in plain "
                "text, and warn where that is what is measured");
  load.add_option("--deadline-ms", arguments.deadline_ms, "Of each request (default: --timeout)")
      ->check(CLI::Range(1, 1000000000));
}

void AddRequestOptions(CLI::App& load, LoadArguments& arguments) {
  load.add_option("--sequences", arguments.input.sequences, "Sequences of one request")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  load.add_option("--lengths", arguments.lengths,
                  "fixed:LENGTH, uniform:FIRST,LAST, lognormal:MEDIAN,SIGMA,FIRST,LAST or "
                  "file:PATH, one length a line (default: fixed:128, or what the model takes)")
      ->check(Parses(LengthDistribution::Parse))
      ->excludes(load.get_option("--trace"));
  load.add_option("--seed", arguments.input.seed, "Of inputs, lengths and times")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  load.add_option("--slo", arguments.objectives,
                  "What the load must keep to, such as p99=20ms, mean=1.5s or errors=0.1%; a "
                  "request that fails keeps to no time. The exit code is 3 if it does not, of "
                  "several loads the smallest. May be repeated")
      ->check(Parses(Objective::Parse))
      ->allow_extra_args(false);
  load.add_option("--json", arguments.outputs.json,
                  "Write the report as JSON; - in place of the table");
  load.add_option("--html", arguments.outputs.html,
                  "Write the report as a page with charts, which needs nothing else")
      ->check(kNoDash);
  load.add_option("--percentiles", arguments.outputs.percentiles,
                  "Write the latencies as a percentile table in HdrHistogram's format; of several "
                  "loads a file each (FILE-LOAD), of several servers likewise (FILE-NUMBER)")
      ->check(kNoDash);
}

}  // namespace

void AddLoadCommand(CLI::App& app, const GlobalOptions& globals, Command& command) {
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
      "counted by code.");
  auto arguments = std::make_shared<LoadArguments>();
  arguments->choice.AddTo(*load);
  AddLoopOptions(*load, *arguments);
  AddRequestOptions(*load, *arguments);
  load->callback([&globals, &command, arguments] {
    command = [&globals, arguments] { return RunLoad(globals, *arguments); };
  });
}

}  // namespace linserve
