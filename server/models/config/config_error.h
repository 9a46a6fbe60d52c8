#pragma once

#include <stdexcept>
#include <string>

namespace linserve {

// Says why a model directory cannot be served: what is wrong, what was expected, how to mend it. It
// is thrown inside models/ only; LoadModel() and its siblings turn it into INVALID_ARGUMENT.
class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace linserve
