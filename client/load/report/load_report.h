#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/library/calls.h"
#include "client/load/report/histogram.h"
#include "client/load/report/load_timeline.h"

namespace linserve {

// Counts answers that were OK: requests all of whose sequences were, and sequences, of other
// requests, too.
struct Answered {
  uint64_t requests = 0;
  uint64_t sequences = 0;
  uint64_t tokens = 0;  // true lengths

  void Add(const std::vector<SequenceResult>& results);
};

// Returns whether a request was answered, and each of its sequences is OK.
bool IsWhole(const absl::Status& status, const std::vector<SequenceResult>& results);

// Lists the quantiles that are told of a time, by their names.
inline constexpr std::array<std::pair<const char*, double>, 5> kQuantiles = {
    {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}}};

// Returns whether a quantile can be told from so many values: three of them lie beyond it.
bool Tells(uint64_t count, double fraction);

// Holds what a load has measured. Times are in nanoseconds.
struct LoadReport {
  double seconds = 0;  // length of the measurement
  // Answers that came within the measurement, also to requests that were sent before: the rates are
  // of these. Requests that wait long would else seem fewer than they are.
  Answered within;
  LoadTimeline timeline;  // of the answers in `within`
  // Requests that were to be sent within the measurement, whenever their answers came. All that
  // follows is about these.
  uint64_t requests = 0;
  Answered ok;
  Histogram latency;   // of OK requests, from when they should have been sent
  Histogram service;   // of OK requests, from when they were sent
  Histogram send_lag;  // of all requests: how late they were sent
  // Sums over the OK sequences, as the server tells them, which it does not by the Open Inference
  // Protocol.
  double queue_ns = 0;
  double batch_ns = 0;
  double compute_ns = 0;
  double batch_sequences = 0;
  bool server_tells = false;                        // whether the server tells of batches at all
  uint64_t uncomputed = 0;                          // OK sequences that were in no batch
  std::map<std::string, uint64_t> request_errors;   // by the name of the code
  std::map<std::string, uint64_t> sequence_errors;  // in requests that were answered
  uint64_t unsent = 0;  // requests for which there was no room in flight
  std::string first_error;
  double away_seconds = 0;  // how long the server could not be reached
  double client_cpu_seconds = 0;
  double client_seconds = 0;  // time in which the client used them
  int client_cpus = 1;
  // Requests a second that the client gets out of a server that does nothing; 0: not measured.
  double ceiling = 0;
  bool open_loop = false;
  bool interrupted = false;

  void Record(const absl::Status& status, const std::vector<SequenceResult>& results);

  // Counts the requests that failed.
  uint64_t failed() const { return requests - ok.requests; }

  // Returns a second's share of an amount that came within the measurement.
  double Rate(uint64_t amount) const;

  // Returns how many sequences were in the batch of one that was computed, on average; nullopt
  // where the server does not tell.
  std::optional<double> batch_size() const;

  // Returns the share of the OK sequences whose results the server had in its cache; nullopt where
  // it does not tell.
  std::optional<double> cached_share() const;

  // Returns the share of this machine's processors that the client used.
  double client_cpu_share() const;

  // Says how many requests and sequences failed of what, and gives the first one's message; "" if
  // none did.
  std::string Errors() const;
};

// Writes a report for people: a few lines and a table.
std::string ToText(const LoadReport& report);

// Writes a report as one JSON object, with times in milliseconds.
nlohmann::json JsonOf(const LoadReport& report);

}  // namespace linserve
