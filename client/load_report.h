#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/calls.h"
#include "client/histogram.h"

namespace linserve {

// What a load has measured. Times are in nanoseconds.
struct LoadReport {
  double seconds = 0;  // from the begin of the measurement until the last OK answer
  uint64_t requests = 0;
  uint64_t ok_requests = 0;
  uint64_t ok_sequences = 0;
  uint64_t tokens = 0;  // true lengths of those sequences
  Histogram latency;    // of OK requests, from when they should have been sent
  Histogram service;    // of OK requests, from when they were sent
  Histogram send_lag;   // of all requests: between the two
  // Sums over the OK sequences, as the server tells them.
  double queue_ns = 0;
  double batch_ns = 0;
  double compute_ns = 0;
  double batch_sequences = 0;
  std::map<std::string, uint64_t> request_errors;   // by the name of the code
  std::map<std::string, uint64_t> sequence_errors;  // in requests that were OK as a whole
  std::string first_error;
  double client_cpu_seconds = 0;
  int client_cpus = 1;
  bool open_loop = false;
  bool interrupted = false;

  void Record(const absl::Status& status, const std::vector<SequenceResult>& results);

  // The share of this machine's processors that the client used.
  double client_cpu_share() const;

  // Why the numbers may tell more about the client than about the server.
  std::vector<std::string> Warnings() const;
};

// For people: a few lines and a table.
std::string ToText(const LoadReport& report);

// The same as one JSON object, with times in milliseconds.
std::string ToJson(const LoadReport& report);

}  // namespace linserve
