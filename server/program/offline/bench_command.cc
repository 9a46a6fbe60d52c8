#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/sequence/pooling.h"
#include "core/system/memory.h"
#include "core/workload/random_item.h"
#include "engine/serving_options.h"
#include "program/commands.h"
#include "program/offline/offline.h"
#include "program/option_flags.h"
#include "telemetry/metrics.h"

namespace linserve {
namespace {

constexpr int64_t kBenchSequences = 256;
constexpr int64_t kBenchSequencesOnDevices = 8192;

struct BenchArguments {
  std::string model;
  std::string input;      // empty: random sequences
  std::string lengths;    // empty: as LengthsFor() says
  int64_t sequences = 0;  // 0: as SequencesFor() says
  int64_t rounds = 5;
  uint64_t seed = 1;
  std::string pooling = "mean";
  std::string device = "auto";
  ServingOptions serving;
  OptionTable table;
  OptionFlags flags;
  bool json = false;
};

// Holds what one round over all sequences took.
struct Round {
  double seconds = 0;
  int64_t tokens = 0;
};

struct Report {
  std::vector<Round> rounds;
  int64_t sequences = 0;

  // Returns the tokens per second of the median round.
  double TokensPerSecond() const {
    std::vector<double> rates;
    for (const Round& round : rounds) {
      rates.push_back(static_cast<double>(round.tokens) / round.seconds);
    }
    std::sort(rates.begin(), rates.end());
    return rates[rates.size() / 2];
  }
};

absl::StatusOr<std::unique_ptr<Engine>> StartEngine(const BenchArguments& arguments,
                                                    ModelMetrics& metrics) {
  auto serving = ServingOptionsFor(arguments.model, arguments.serving, arguments.flags);
  if (!serving.ok()) return serving.status();
  return StartOffline({arguments.model, *serving, arguments.device}, metrics);
}

absl::StatusOr<Round> RunRound(Engine& engine, std::vector<Item> items, int64_t tokens) {
  const auto start = std::chrono::steady_clock::now();
  auto results = RunAll(engine, std::move(items), [](size_t, size_t) {});
  if (!results.ok()) return results.status();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return Round{took.count(), tokens};
}

std::string LengthsFor(const BenchArguments& arguments, const Signature& signature) {
  if (!arguments.lengths.empty()) return arguments.lengths;
  const int64_t limit = LongestLength(signature);
  const int64_t longest = limit == 0 ? 512 : std::min<int64_t>(limit, 512);
  return "lognormal:" + std::to_string(std::min<int64_t>(longest, 96)) + ",0.8," +
         std::to_string(std::min<int64_t>(longest, 8)) + "," + std::to_string(longest);
}

// Returns how many sequences make several batches, or one of a model that mixes them.
int64_t SequencesFor(const BenchArguments& arguments, const Engine& engine) {
  if (arguments.sequences > 0) return arguments.sequences;
  const bool few = engine.info().device == "cpu" || engine.info().signature.request_is_unit;
  return few ? kBenchSequences : kBenchSequencesOnDevices;
}

absl::StatusOr<std::vector<Item>> RandomItems(const BenchArguments& arguments, const Engine& engine,
                                              std::mt19937_64& random) {
  const Signature& signature = engine.info().signature;
  const auto lengths = LengthDistribution::Parse(LengthsFor(arguments, signature));
  if (!lengths.ok()) return lengths.status();
  absl::Status status = CheckLengths(signature, arguments.model, *lengths);
  if (!status.ok()) return status;
  std::vector<Item> items;
  for (int64_t i = 0; i < SequencesFor(arguments, engine); ++i) {
    items.push_back(RandomItem(signature, *lengths, random));
  }
  return items;
}

absl::StatusOr<Report> Measure(const BenchArguments& arguments) {
  Metrics metrics({});
  auto engine = StartEngine(arguments, metrics.ForModel("bench", 1));
  if (!engine.ok()) return engine.status();
  const Signature& signature = (*engine)->info().signature;
  const auto given = arguments.input.empty()
                         ? absl::StatusOr<std::vector<Item>>(std::vector<Item>())
                         : ReadItems(arguments.input, signature);
  if (!given.ok()) return given.status();
  std::mt19937_64 random(arguments.seed);
  Report report;
  const bool terminal = isatty(STDERR_FILENO) == 1;
  for (int64_t i = -1; i < arguments.rounds; ++i) {  // the first round warms up
    // Lengths are new in each round, as they are for a server: what is made for some of them would
    // flatter.
    auto items = arguments.input.empty() ? RandomItems(arguments, **engine, random) : given;
    if (!items.ok()) return items.status();
    int64_t tokens = 0;
    for (Item& item : *items) {
      item.options.pooling = PoolingFromName(arguments.pooling).value_or(Pooling::kNone);
      tokens += PackedRows(signature, item);
    }
    report.sequences = static_cast<int64_t>(items->size());
    auto round = RunRound(**engine, *std::move(items), tokens);
    if (!round.ok()) return round.status();
    if (i >= 0) report.rounds.push_back(*round);
    if (terminal) std::fprintf(stderr, "\r%zu rounds", report.rounds.size());
  }
  if (terminal) std::fprintf(stderr, "\r");
  return report;
}

void Print(const Report& report, bool json) {
  const double tokens_per_s = report.TokensPerSecond();
  int64_t all_tokens = 0;
  for (const Round& round : report.rounds) all_tokens += round.tokens;
  const int64_t tokens = all_tokens / std::ssize(report.rounds);
  const double sequences_per_s =
      tokens_per_s * static_cast<double>(report.sequences) / static_cast<double>(tokens);
  if (json) {
    nlohmann::json rounds = nlohmann::json::array();
    for (const Round& round : report.rounds) rounds.push_back(round.seconds);
    const nlohmann::json document = {{"sequences", report.sequences},
                                     {"tokens", tokens},
                                     {"seconds", rounds},
                                     {"tokens_per_s", tokens_per_s},
                                     {"sequences_per_s", sequences_per_s},
                                     {"peak_memory_bytes", PeakResidentBytes()}};
    std::printf("%s\n", document.dump().c_str());
    return;
  }
  std::printf(
      "%lld sequences, %lld tokens, median of %zu rounds: %.0f tokens/s, %.1f sequences/s; at most "
      "%s of memory\n",
      static_cast<long long>(report.sequences), static_cast<long long>(tokens),
      report.rounds.size(), tokens_per_s, sequences_per_s,
      FormatBytes(static_cast<double>(PeakResidentBytes())).c_str());
}

int Bench(const BenchArguments& arguments) {
  const auto report = Measure(arguments);
  if (!report.ok()) return Fail(std::string(report.status().message()));
  Print(*report, arguments.json);
  return 0;
}

}  // namespace

void AddBenchCommand(CLI::App& app, ChosenCommand& chosen) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command = app.add_subcommand(
      "bench", "Measure the engine on random sequences, without a server and its network");
  command->footer(
      "Measures what a server of this model can reach on this machine, before one is set up.\n\n"
      "Examples:\n"
      "  linserve bench --model my-model --lengths lognormal:96,0.8,8,512 --dtype bf16\n"
      "  linserve bench --model my-model --input in.safetensors --pooling none\n\n"
      "The flags from --padding on win over the \"serving\" object of the model's config.json.\n");
  AddModelFlag(*command, arguments->model);
  command->add_option(
      "--input", arguments->input,
      "A safetensors file of sequences, as for `linserve run` (default: random ones)");
  command->add_option(
      "--lengths", arguments->lengths,
      "How long random sequences are: fixed:LENGTH, uniform:FIRST,LAST, "
      "lognormal:MEDIAN,SIGMA,FIRST,LAST or file:PATH with one length a line (default: "
      "lognormal:96,0.8,8,512, or what the model takes of it)");
  command
      ->add_option("--sequences", arguments->sequences,
                   "How many random sequences a round has, submitted one request after the other "
                   "(default: " +
                       std::to_string(kBenchSequences) + ", on a GPU " +
                       std::to_string(kBenchSequencesOnDevices) + ")")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--rounds", arguments->rounds,
                   "How many rounds are measured, after one to warm up")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--seed", arguments->seed)->capture_default_str();
  command
      ->add_option("--pooling", arguments->pooling,
                   "How rows become one vector: none, mean, cls, last or max")
      ->check(CLI::IsMember(std::vector<std::string>(kPoolingNames.begin(), kPoolingNames.end())))
      ->capture_default_str();
  command->add_option("--device", arguments->device, kDeviceHelp)->capture_default_str();
  arguments->serving.Bind(arguments->table);
  AddOptionFlags(*command, arguments->table, arguments->flags,
                 {"padding", "buckets", "dtype", "threads", "replicas", "max_batch_tokens",
                  "max_batch_sequences"});
  command->add_flag("--json", arguments->json,
                    "Print one line of JSON, with the seconds of each round");
  command->callback([arguments, &chosen] { chosen = [arguments] { return Bench(*arguments); }; });
}

}  // namespace linserve
