#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace linserve {

// Each adds one subcommand to the program. When it is chosen, `chosen` is set to what runs it,
// which returns the exit status.
using ChosenCommand = std::function<int()>;

void AddServeCommand(CLI::App& app, ChosenCommand& chosen);
void AddRunCommand(CLI::App& app, ChosenCommand& chosen);
void AddInitCommand(CLI::App& app, ChosenCommand& chosen);
void AddInspectCommand(CLI::App& app, ChosenCommand& chosen);
void AddBenchCommand(CLI::App& app, ChosenCommand& chosen);

// Runs the command that the arguments name, which are those of main(), and returns its exit status.
// Exceptions are the caller's.
int RunProgram(int argc, char** argv);

// Prints "linserve: MESSAGE" to standard error and returns the exit status of a failure.
int Fail(const std::string& message);

}  // namespace linserve
