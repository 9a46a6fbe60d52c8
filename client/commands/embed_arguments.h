#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "client/commands/commands.h"
#include "client/commands/embed_job.h"
#include "client/files/inputs.h"
#include "client/files/outputs.h"

namespace linserve {

// Holds what `linserve-client embed` was asked for.
struct EmbedArguments {
  std::string file = "-";
  std::string format = "auto";
  InputOptions input;
  std::string truncate;
  std::string prompt_name;
  ModelChoice choice;
  std::string output;
  std::string output_format = "auto";
  size_t batch = EmbedJobOptions().batch;
  size_t in_flight = EmbedJobOptions().in_flight;
  bool neighbours = false;
  int64_t chunk_rows = 0;  // 0: sequences are sent as a whole
  std::string restore;
  std::string save;

  void AddTo(CLI::App& embed);
  absl::Status Check() const;  // INVALID_ARGUMENT: options that do not go together
  InputFormat Format() const;
  OutputFormat ResultFormat() const;

 private:
  void AddInputOptions(CLI::App& embed);
  void AddOutputOptions(CLI::App& embed);
  void AddSessionOptions(CLI::App& embed);
};

}  // namespace linserve
