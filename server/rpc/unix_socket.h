#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "core/options/options.h"

namespace linserve {

// Says where callers on this machine may connect besides the address.
struct UnixSocketOptions {
  std::string path{};  // empty: nowhere
  // Permissions of the socket's file: who may write to it may call.
  mode_t mode = 0600;

  void Bind(OptionTable& table);

  // Returns UNAVAILABLE if another program listens there already: gRPC takes a socket's path over,
  // whoever has it.
  absl::Status CheckFree() const;
};

// Makes files that this process makes meanwhile have at most these permissions. A socket has them
// from the first, then; it is to be used before other threads make files.
class ModeOfNewFiles {
 public:
  explicit ModeOfNewFiles(mode_t mode);
  ~ModeOfNewFiles();
  ModeOfNewFiles(const ModeOfNewFiles&) = delete;
  ModeOfNewFiles& operator=(const ModeOfNewFiles&) = delete;

 private:
  const mode_t before_;
};

}  // namespace linserve
