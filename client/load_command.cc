#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>

#include "client/commands.h"
#include "client/load_generator.h"
#include "client/load_inputs.h"
#include "client/load_sweep.h"
#include "client/objective.h"
#include "client/progress.h"
#include "core/lengths.h"

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
  LoadInputOptions input;
  std::vector<size_t> concurrencies = {LoadOptions().concurrency};
  std::vector<double> rates;
  std::vector<std::string> objectives;
  double duration_s = 10;
  double warmup_s = 1;
  uint64_t requests = 0;
  int64_t deadline_ms = 0;
  size_t connections = 1;
  std::string json;
};

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::nanoseconds(std::llround(seconds * 1e9));
}

// As asked for, else 128 or the longest that the model takes.
absl::StatusOr<LengthDistribution> Lengths(const LoadArguments& arguments,
                                           const ModelDescription& model) {
  if (!arguments.lengths.empty()) return LengthDistribution::Parse(arguments.lengths);
  int64_t length = 128;
  for (const LengthLimit& limit : model.signature.limits) length = std::min(length, limit.longest);
  return LengthDistribution::Fixed(std::max<int64_t>(length, 1));
}

using Clients = std::vector<std::unique_ptr<EmbeddingClient>>;

// Connects them all, so that the load does not begin with that.
absl::StatusOr<ModelDescription> Connect(const GlobalOptions& globals,
                                         const LoadArguments& arguments, Clients& clients) {
  ClientOptions options = globals.ToClientOptions();
  if (arguments.deadline_ms > 0) options.timeout = std::chrono::milliseconds(arguments.deadline_ms);
  absl::StatusOr<ModelDescription> model;
  for (size_t i = 0; i < arguments.connections; ++i) {
    clients.push_back(std::make_unique<EmbeddingClient>(options));
    model = clients.back()->GetModel(arguments.choice.model, arguments.choice.version);
    if (!model.ok()) return model;
  }
  return model;
}

void ShowProgress(const std::stop_token& stop, const LoadGenerator& generator) {
  ProgressLine line;
  if (!line.shown()) return;
  uint64_t answered_before = 0;
  for (int tick = 1; !stop.stop_requested(); ++tick) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (tick % 10 != 0) continue;
    const LoadProgress now = generator.progress();
    char text[160];
    std::snprintf(text, sizeof(text), "%s %.0f s: %llu requests/s, %llu failed, %zu in flight",
                  now.warming_up ? "warming up" : "measuring",
                  std::chrono::duration<double>(now.elapsed).count(),
                  static_cast<unsigned long long>(now.answered - answered_before),
                  static_cast<unsigned long long>(now.failed), now.in_flight);
    line.Draw(text);
    answered_before = now.answered;
  }
}

// At a rate, or with so many in flight where it is 0.
LoadReport Measure(const LoadArguments& arguments, double rate, size_t concurrency,
                   Clients& clients, const std::vector<PreparedCall>& calls) {
  LoadOptions options;
  options.rate = rate;
  options.concurrency = concurrency;
  options.duration = Seconds(arguments.duration_s);
  options.requests = arguments.requests;
  options.warmup = Seconds(arguments.warmup_s);
  options.seed = arguments.input.seed;
  LoadGenerator generator(options, [&](uint64_t n, EmbedCallback done) {
    return clients[n % clients.size()]->EmbedAsync(calls[n % calls.size()], std::move(done));
  });
  const std::jthread progress(
      [&generator](const std::stop_token& stop) { ShowProgress(stop, generator); });
  return generator.Run(interrupted);
}

absl::Status WriteReport(const std::string& text, const std::string& json,
                         const std::string& json_path) {
  if (json_path == "-") {
    std::printf("%s\n", json.c_str());
    return absl::OkStatus();
  }
  std::fputs(text.c_str(), stdout);
  if (json_path.empty()) return absl::OkStatus();
  std::ofstream file(json_path);
  file << json << '\n';
  file.close();
  return file ? absl::OkStatus() : absl::NotFoundError("cannot write to " + json_path);
}

std::vector<SweepStep> MeasureAll(const LoadArguments& arguments, Clients& clients,
                                  const std::vector<PreparedCall>& calls) {
  std::signal(SIGINT, OnInterrupt);
  std::signal(SIGTERM, OnInterrupt);
  std::vector<SweepStep> steps;
  const bool open = !arguments.rates.empty();
  const size_t count = open ? arguments.rates.size() : arguments.concurrencies.size();
  for (size_t i = 0; i < count && (i == 0 || !interrupted); ++i) {
    const double rate = open ? arguments.rates[i] : 0;
    const size_t concurrency = open ? 1 : arguments.concurrencies[i];
    if (count > 1) std::fprintf(stderr, "load %zu of %zu\n", i + 1, count);
    steps.push_back({open ? rate : static_cast<double>(concurrency),
                     Measure(arguments, rate, concurrency, clients, calls)});
  }
  return steps;
}

// The last word of a measurement: whether it went as it should.
int ExitCode(const std::vector<SweepStep>& steps, const std::vector<Objective>& objectives) {
  constexpr int kObjectiveMissed = 3;
  const bool any = std::any_of(steps.begin(), steps.end(),
                               [](const SweepStep& step) { return step.report.ok.sequences > 0; });
  if (!any) return EXIT_FAILURE;
  return BestOf(steps, objectives) == nullptr ? kObjectiveMissed : EXIT_SUCCESS;
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

int RunLoad(const GlobalOptions& globals, LoadArguments arguments) {
  std::sort(arguments.rates.begin(), arguments.rates.end());
  std::sort(arguments.concurrencies.begin(), arguments.concurrencies.end());
  const auto objectives = Objectives(arguments.objectives);
  if (!objectives.ok()) return Fail(objectives.status());
  Clients clients;
  const auto model = Connect(globals, arguments, clients);
  if (!model.ok()) return Fail(model.status());
  const auto lengths = Lengths(arguments, *model);
  if (!lengths.ok()) return Fail(lengths.status());
  arguments.input.options = arguments.choice.ToOutputOptions();
  arguments.input.priority = PriorityFromLevel(arguments.choice.priority);
  arguments.input.version = arguments.choice.version;
  const auto calls = MakeLoadCalls(*model, *lengths, arguments.input);
  if (!calls.ok()) return Fail(calls.status());
  std::vector<PreparedCall> prepared;
  for (const EmbedCall& call : *calls) {
    prepared.emplace_back(call, globals.ToClientOptions().protocol);
  }
  const std::vector<SweepStep> steps = MeasureAll(arguments, clients, prepared);
  const bool sweep = steps.size() > 1;
  std::string text = sweep ? ToText(steps, *objectives) : ToText(steps[0].report);
  if (!sweep) {
    for (const Objective& objective : *objectives) {
      text += "objective " + objective.Verdict(steps[0].report) + '\n';
    }
  }
  const std::string json = sweep ? ToJson(steps, *objectives) : ToJson(steps[0].report);
  if (auto status = WriteReport(text, json, arguments.json); !status.ok()) return Fail(status);
  return ExitCode(steps, *objectives);
}

void AddLoopOptions(CLI::App& load, LoadArguments& arguments) {
  CLI::Option* concurrency =
      load.add_option("--concurrency", arguments.concurrencies,
                      "Closed loop: requests always in flight, each answer sends the next; several "
                      "(1,2,4,8) are measured one after the other, for the knee")
          ->delimiter(',')
          ->check(CLI::Range(1, 100000))
          ->capture_default_str();
  load.add_option("--rate", arguments.rates,
                  "Open loop: requests a second at random (Poisson) times, whatever the answers "
                  "do; the latency then counts from when a request should have been sent; or "
                  "several, likewise")
      ->delimiter(',')
      ->check(CLI::Range(1e-3, 1e6))
      ->excludes(concurrency);
  CLI::Option* duration = load.add_option("--duration", arguments.duration_s, "Seconds to measure")
                              ->check(CLI::Range(0.001, 1e6))
                              ->capture_default_str();
  load.add_option("--requests", arguments.requests, "Measure so many requests instead")
      ->excludes(duration);
  load.add_option(
          "--warmup", arguments.warmup_s,
          "Seconds of the same load before, not measured; longer than a request takes, lest "
          "the rates begin at zero")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  load.add_option("--connections", arguments.connections, "Connections, used in turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  load.add_option("--deadline-ms", arguments.deadline_ms, "Of each request (default: --timeout)")
      ->check(CLI::Range(1, 1000000000));
}

void AddRequestOptions(CLI::App& load, LoadArguments& arguments) {
  load.add_option("--sequences", arguments.input.sequences, "Sequences of one request")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  load.add_option("--lengths", arguments.lengths,
                  "fixed:LENGTH, uniform:FIRST,LAST, lognormal:MEDIAN,SIGMA,FIRST,LAST or "
                  "file:PATH, one length a line (default: fixed:128, or what the model takes)");
  load.add_option("--seed", arguments.input.seed, "Of inputs, lengths and times")
      ->capture_default_str();
  load.add_option("--slo", arguments.objectives,
                  "What the load must keep to, such as p99=20ms, mean=1.5s or errors=0.1%; the "
                  "exit code is 3 if it does not. May be repeated")
      ->allow_extra_args(false);
  load.add_option("--json", arguments.json, "Write the report as JSON; - in place of the table");
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
