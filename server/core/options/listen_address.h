#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/options/options.h"

namespace linserve {

// Says where a server listens.
struct ListenAddress {
  std::string host;
  int port = 0;  // 0: any free one

  // Parses "127.0.0.1:8500" or "[::1]:0". INVALID_ARGUMENT says what was expected.
  static absl::StatusOr<ListenAddress> Parse(const std::string& text);
  std::string ToString() const;

  void Bind(OptionTable& table, std::string name, std::string help);
};

}  // namespace linserve
