#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "client/embedding_client.h"

namespace linserve {

// Options of every subcommand.
struct GlobalOptions {
  std::string target = ClientOptions().target;
  double timeout_s = 30;
  std::string protocol = "linserve";
  int64_t vocabulary = ClientOptions().vocabulary;
  bool balance = false;
  bool tls = false;
  std::string tls_ca;  // paths
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_server_name;
  std::string token_file;

  void AddTo(CLI::App& app);
  // Reads the files; throws CLI::ValidationError, which names the one that cannot be read.
  ClientOptions ToClientOptions() const;
};

// What the chosen subcommand does; returns the exit code.
using Command = std::function<int()>;

// Each adds its subcommand to `app`; parsing the command line that names it sets `command`.
// `globals` and `command` must outlive `app`.
void AddEmbedCommand(CLI::App& app, const GlobalOptions& globals, Command& command);
void AddGenerateCommand(CLI::App& app, const GlobalOptions& globals, Command& command);
void AddSearchCommand(CLI::App& app, const GlobalOptions& globals, Command& command);
void AddCompareCommand(CLI::App& app, const GlobalOptions& globals, Command& command);
void AddLoadCommand(CLI::App& app, const GlobalOptions& globals, Command& command);
void AddModelsCommand(CLI::App& app, const GlobalOptions& globals, Command& command);
void AddHealthCommand(CLI::App& app, const GlobalOptions& globals, Command& command);
void AddNullServerCommand(CLI::App& app, Command& command);

// Writes "linserve-client: CODE: message" to standard error and returns exit code 1.
int Fail(const absl::Status& status);

// Options that embed and load share: what is asked of which model.
struct ModelChoice {
  std::string model;
  int64_t version = 0;
  std::string pooling = "mean";
  bool normalize = false;
  std::string dtype = "f32";
  uint32_t priority = 2;
  std::vector<std::string> outputs;

  void AddTo(CLI::App& app);
  // Those that name the model alone, and those that do not.
  void AddModelOptions(CLI::App& app);
  void AddResultOptions(CLI::App& app);
  OutputOptions ToOutputOptions() const;
};

}  // namespace linserve
