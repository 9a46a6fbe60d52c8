#pragma once

#include <optional>

namespace CLI {
class App;
}

namespace linserve {

// Parses a program's arguments. Returns the code that the program is to end with at once: 0 after
// --help or --version, 2 after faulty arguments. Both have been written to standard output or error
// then, what is misspelt with the name that was probably meant.
std::optional<int> ParseCommandLine(CLI::App& app, int argc, const char* const* argv);

}  // namespace linserve
