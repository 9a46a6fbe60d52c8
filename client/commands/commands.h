#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "client/library/embedding_client.h"

namespace linserve {

// Holds the options of every subcommand.
struct GlobalOptions {
  std::string target = ClientOptions().target;
  double timeout_s = 30;
  std::string protocol = "linserve";
  int64_t vocabulary = ClientOptions().vocabulary;
  bool balance = false;
  bool tls = false;
  std::string tls_ca;  // a path
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_server_name;
  std::string token_file;

  void AddTo(CLI::App& app);
  // Reads the files that the options name. Throws CLI::ValidationError, which names the one that
  // cannot be read.
  ClientOptions ToClientOptions() const;
};

// Does what the chosen subcommand does, and returns the exit status.
using ChosenCommand = std::function<int()>;

// Each function adds its subcommand to `app`; parsing the command line that names it sets `chosen`.
// `globals` and `chosen` must outlive `app`.
void AddEmbedCommand(CLI::App& app, const GlobalOptions& globals, ChosenCommand& chosen);
void AddGenerateCommand(CLI::App& app, const GlobalOptions& globals, ChosenCommand& chosen);
void AddSearchCommand(CLI::App& app, const GlobalOptions& globals, ChosenCommand& chosen);
void AddCompareCommand(CLI::App& app, const GlobalOptions& globals, ChosenCommand& chosen);
void AddLoadCommand(CLI::App& app, const GlobalOptions& globals, ChosenCommand& chosen);
void AddModelsCommand(CLI::App& app, const GlobalOptions& globals, ChosenCommand& chosen);
void AddHealthCommand(CLI::App& app, const GlobalOptions& globals, ChosenCommand& chosen);
void AddNullServerCommand(CLI::App& app, ChosenCommand& chosen);

// Writes "linserve-client: CODE: message" to standard error and returns exit code 1.
int FailWith(const absl::Status& status);

// Holds options that embed and load share: what is asked of which model.
struct ModelChoice {
  std::string model;
  int64_t version = 0;
  std::string pooling{};  // "": as the model is served, which then is `mean` for one served by rows
  std::optional<bool> normalize{};
  std::string dtype = "f32";
  uint32_t priority = 2;
  std::vector<std::string> outputs;

  void AddTo(CLI::App& app);
  // AddModelOptions() adds the options that name the model, AddResultOptions() those that say what
  // is asked of it.
  void AddModelOptions(CLI::App& app);
  void AddResultOptions(CLI::App& app);
  OutputOptions ToOutputOptions(const ModelDescription& of_model) const;
};

}  // namespace linserve
