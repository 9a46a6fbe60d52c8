#pragma once

#include <optional>

namespace CLI {
class App;
}

namespace linserve {

// Parses a program's arguments. Returns the code that the program is to end with at once: 0 after
// --help or --version, 2 after faulty arguments. The help or the error was written to standard
// output or error by then; for a misspelt argument the error names the one that was probably meant.
std::optional<int> ParseCommandLine(CLI::App& app, int argc, const char* const* argv);

}  // namespace linserve
