#pragma once

#include <cstdlib>
#include <string>

namespace linserve {

// What the tests were built with, unless a variable tells where it is on this machine.
inline std::string BuiltOr(const char* variable, const char* built) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : built;
}

// A file of tests/data.
inline std::string DataFile(const std::string& name) {
  return BuiltOr("LINSERVE_TEST_DATA", LINSERVE_TEST_DATA) + "/" + name;
}

}  // namespace linserve
