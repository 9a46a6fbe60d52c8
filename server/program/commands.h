#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace linserve {

// Runs a command and returns the exit status. Each function below adds one subcommand to the
// program, and sets `chosen` to what runs it when it is chosen.
using ChosenCommand = std::function<int()>;

void AddServeCommand(CLI::App& app, ChosenCommand& chosen);
void AddRunCommand(CLI::App& app, ChosenCommand& chosen);
void AddInitCommand(CLI::App& app, ChosenCommand& chosen);
void AddInspectCommand(CLI::App& app, ChosenCommand& chosen);
void AddBenchCommand(CLI::App& app, ChosenCommand& chosen);

// Runs the command that the arguments of main() name, and returns its exit status. Exceptions pass
// through to the caller.
int RunProgram(int argc, char** argv);

// Prints "linserve: MESSAGE" to standard error and returns the exit status of a failure.
int Fail(const std::string& message);

}  // namespace linserve
