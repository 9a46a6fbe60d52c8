#include "support/paths.h"

#include <cstdlib>

namespace linserve {
namespace {

std::string VariableOr(const char* variable, const std::string& otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : otherwise;
}

}  // namespace

std::string SourceFile(const std::string& name) { return LINSERVE_SOURCE_DIRECTORY "/" + name; }

std::string BuiltFile(const std::string& name) { return LINSERVE_BUILD_DIRECTORY "/" + name; }

std::string DataFile(const std::string& name) {
  return VariableOr("LINSERVE_TEST_DATA", SourceFile("tests/data")) + "/" + name;
}

std::string BundledModels() { return SourceFile("deploy/models"); }

std::string ServerProgram() {
  return VariableOr("LINSERVE_TEST_PROGRAM", BuiltFile("bin/linserve"));
}

std::string ClientProgram() {
  return VariableOr("LINSERVE_TEST_CLIENT_PROGRAM", BuiltFile("bin/linserve-client"));
}

}  // namespace linserve
