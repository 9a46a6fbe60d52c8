#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "client/commands/commands.h"
#include "client/library/embedding_client.h"
#include "client/load/load_generator.h"
#include "client/load/load_inputs.h"
#include "client/load/load_output.h"

namespace linserve {

// Holds the command line of `linserve-client load`.
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

  void AddTo(CLI::App& load);

  // Returns the lengths that were asked for, else 128 or the longest that the model takes.
  std::string LengthsFor(const ModelDescription& model) const;
};

}  // namespace linserve
