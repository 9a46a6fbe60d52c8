#pragma once

#include <string>
#include <vector>

namespace linserve {

struct LoadReport;

// Says why the numbers of a load may not be what they seem.
struct LoadWarning {
  std::string what;      // "the client is the limit"
  std::string detail{};  // "it used 95 % of this machine's processors"
  std::string advice{};  // how to mend it
};

std::vector<LoadWarning> WarningsOf(const LoadReport& report);

// Holds the warnings of one load, by its name; empty: there is only one load.
struct NamedWarnings {
  std::string load;
  std::vector<LoadWarning> warnings;
};

// Writes each warning once, however many loads have it, with what each of them has of it.
std::vector<std::string> Joined(const std::vector<NamedWarnings>& loads);

}  // namespace linserve
