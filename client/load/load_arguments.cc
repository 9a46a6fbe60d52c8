#include "client/load/load_arguments.h"

#include <algorithm>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/commands/target.h"
#include "client/library/calls.h"
#include "client/load/report/objective.h"
#include "core/workload/lengths.h"
#include "core/workload/random_item.h"

namespace linserve {
namespace {

// This validator says what is wrong with an argument before anything is asked of a server.
const CLI::Validator kObjective(
    [](const std::string& text) { return std::string(Objective::Parse(text).status().message()); },
    "");

// A file is read only when it is used, since it may be a pipe.
const CLI::Validator kLengths(
    [](const std::string& text) {
      return text.starts_with("file:")
                 ? ""
                 : std::string(LengthDistribution::Parse(text).status().message());
    },
    "");

const CLI::Validator kNoDash(
    [](const std::string& path) {
      return path == "-" ? "expected a file; - is for --json alone" : "";
    },
    "");

// A target may have an @, too, but not behind a bare word.
const CLI::Validator kSubject(
    [](const std::string& subject) -> std::string {
      if (ProtocolFromName(subject)) return "";
      const size_t at = subject.find('@');
      const std::string word = subject.substr(0, at);
      const bool known = ProtocolFromName(word).has_value();
      const bool bare = std::all_of(word.begin(), word.end(), absl::ascii_isalnum);
      if (!known && bare && !subject.empty())
        return "'" + word + "' is no protocol, expected linserve or oip";
      const std::string target = known ? subject.substr(at + 1) : subject;
      return target.empty() ? "it names no target" : TargetFault(target);
    },
    "");

// Binds an option to a time, which is given as a number of its units.
template <typename Count, typename Unit>
CLI::Option* AddTime(CLI::App& app, const std::string& name,
                     std::chrono::duration<Count, Unit>& time, const std::string& help) {
  return app.add_option_function<Count>(
      name, [&time](const Count& count) { time = std::chrono::duration<Count, Unit>(count); },
      help);
}

void AddLoopOptions(CLI::App& load, LoadArguments& arguments) {
  CLI::Option* concurrency =
      load.add_option(
              "--concurrency", arguments.concurrencies,
              "How many requests are always in flight: each answer sends the next request "
              "(closed loop). Several numbers (1,2,4,8) are measured one after the other, to "
              "find the knee")
          ->delimiter(',')
          ->check(CLI::Range(1, 100000))
          ->capture_default_str();
  CLI::Option* rate =
      load.add_option(
              "--rate", arguments.rates,
              "How many requests are sent a second, at random (Poisson) times, whatever the "
              "answers do (open loop). The latency then counts from when a request should have "
              "been sent. Several rates are measured one after the other")
          ->delimiter(',')
          ->check(CLI::Range(1e-3, 1e6))
          ->excludes(concurrency);
  CLI::Option* duration = AddTime(load, "--duration", arguments.duration, "Seconds to measure")
                              ->check(CLI::Range(0.001, 1e6))
                              ->default_str(absl::StrCat(arguments.duration.count()));
  CLI::Option* requests = load.add_option("--requests", arguments.requests,
                                          "Measure this many requests, in place of --duration")
                              ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 50))
                              ->excludes(duration);
  CLI::Option* trace =
      load.add_option(
              "--trace", arguments.trace,
              "A file with a line \"SECONDS LENGTH\" for each request, which is sent at its time "
              "(open loop); all of it is measured")
          ->check(CLI::ExistingFile | CLI::IsMember({"-"}))
          ->excludes(concurrency)
          ->excludes(rate)
          ->excludes(duration)
          ->excludes(requests);
  load.add_option(
          "--against", arguments.against,
          "Put the same load on another server in turns, and compare. It is a TARGET, a PROTOCOL "
          "(linserve, oip) that the same server is asked by, or PROTOCOL@TARGET. May be repeated")
      ->check(kSubject)
      ->allow_extra_args(false);
  AddTime(load, "--warmup", arguments.warmup,
          "Seconds of the same load before the measurement; more than a request takes, lest the "
          "rates begin at zero")
      ->check(CLI::Range(0.0, 1e6))
      ->excludes(trace)
      ->default_str(absl::StrCat(arguments.warmup.count()));
  load.add_option("--connections", arguments.connections, "How many connections are used in turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  load.add_flag("--ceiling", arguments.ceiling,
                "First measure what the client gets out of a server that does nothing, in plain "
                "text, and warn where that is what is measured");
  AddTime(load, "--deadline-ms", arguments.deadline,
          "Milliseconds that each request may take (default: --timeout)")
      ->check(CLI::Range(1, 1000000000));
}

void AddRequestOptions(CLI::App& load, LoadArguments& arguments) {
  load.add_option("--sequences", arguments.input.sequences, "How many sequences one request has")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  load.add_option("--distinct", arguments.input.requests,
                  "How many different requests are made, and sent in turn; of a server that keeps "
                  "results, more are computed anew")
      ->check(CLI::Range(1, 10000000))
      ->capture_default_str();
  load.add_option("--lengths", arguments.lengths,
                  "How long sequences are: fixed:LENGTH, uniform:FIRST,LAST, "
                  "lognormal:MEDIAN,SIGMA,FIRST,LAST or file:PATH with one length a line (default: "
                  "fixed:128, or what the model takes)")
      ->check(kLengths)
      ->excludes(load.get_option("--trace"));
  load.add_option("--seed", arguments.input.seed,
                  "Equal seeds give equal inputs, lengths and times")
      ->check(CLI::Range(int64_t{0}, INT64_MAX))
      ->capture_default_str();
  load.add_option("--slo", arguments.objectives,
                  "What the load must keep to, such as p99=20ms, mean=1.5s or errors=0.1%; a "
                  "request that fails keeps to no time. The exit code is 3 if the load does not "
                  "keep to it, or with several loads the smallest does not. May be repeated")
      ->check(kObjective)
      ->allow_extra_args(false);
  load.add_option("--json", arguments.outputs.json,
                  "Write the report to this file as JSON; - prints it in place of the table");
  load.add_option("--html", arguments.outputs.html,
                  "Write the report to this file as a page with charts, which needs nothing else")
      ->check(kNoDash);
  load.add_option(
          "--percentiles", arguments.outputs.percentiles,
          "Write the latencies to this file as a percentile table in HdrHistogram's format; "
          "several loads have a file each (FILE-LOAD), and several servers, too "
          "(FILE-NUMBER)")
      ->check(kNoDash);
}

}  // namespace

void LoadArguments::AddTo(CLI::App& load) {
  choice.AddTo(load);
  AddLoopOptions(load, *this);
  AddRequestOptions(load, *this);
}

std::string LoadArguments::LengthsFor(const ModelDescription& model) const {
  if (!lengths.empty()) return lengths;
  const int64_t longest = LongestLength(model.signature);
  return "fixed:" + std::to_string(longest == 0 ? 128 : std::min<int64_t>(longest, 128));
}

}  // namespace linserve
