#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/files/descriptor.h"

namespace linserve {

// Takes TCP connections on a port.
class Listener {
 public:
  // Listens on the first address of the host that can be had; port 0: any free one. UNAVAILABLE
  // says why there is none.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(const std::string& host, int port);

  int port() const;

  // Waits for a connection, whose descriptor does not block; -1 once Close() was called.
  int Accept();

  // Ends Accept(). Thread-safe.
  void Close();

 private:
  explicit Listener(int descriptor) : descriptor_(descriptor) {}

  const Descriptor descriptor_;
  std::atomic<bool> closed_ = false;
};

}  // namespace linserve
