#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
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
  std::chrono::duration<double> duration{10};
  std::chrono::duration<double> warmup{1};
  uint64_t requests = 0;
  std::chrono::duration<int64_t, std::milli> deadline{0};  // 0: the client's timeout
  size_t connections = 1;
  bool ceiling = false;
  LoadOutputs outputs;

  void AddTo(CLI::App& load);

  // Returns the lengths that were asked for, else 128 or the longest that the model takes.
  std::string LengthsFor(const ModelDescription& model) const;
};

}  // namespace linserve
