#pragma once

#include <string>

namespace linserve {

// A file of tests/data.
inline std::string DataFile(const std::string& name) {
  return std::string(LINSERVE_TEST_DATA) + "/" + name;
}

}  // namespace linserve
