#pragma once

#include <string>

namespace linserve {

// Returns the path of a file of the checkout, by its path in it.
std::string SourceFile(const std::string& name);

// Returns the path of a file of the build that the tests belong to, by its path in it.
std::string BuiltFile(const std::string& name);

// Returns the path of a file of tests/data; with LINSERVE_TEST_DATA set, of that folder.
std::string DataFile(const std::string& name);

// Returns the path of the bundled models, a model repository.
std::string BundledModels();

// These return the programs under test; LINSERVE_TEST_PROGRAM and LINSERVE_TEST_CLIENT_PROGRAM name
// others.
std::string ServerProgram();
std::string ClientProgram();

}  // namespace linserve
