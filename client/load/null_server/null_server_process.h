#pragma once

#include <sys/types.h>

#include <iosfwd>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "client/load/null_server/null_server.h"
#include "core/files/descriptor.h"

namespace linserve {

// Runs a NullServer in a process of its own, which ends with this object, or with this process.
class NullServerProcess {
 public:
  // Runs this program's command null-server. Returns INTERNAL if it did not start.
  static absl::StatusOr<std::unique_ptr<NullServerProcess>> Start(const RecordedAnswer& answer);
  ~NullServerProcess();

  std::string target() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  NullServerProcess(pid_t process, Descriptor socket)
      : process_(process), socket_(std::move(socket)) {}

  pid_t process_;
  Descriptor socket_;  // the process's standard input and output; it ends when they do
  int port_ = 0;
};

// Writes the answer as the process is told it: the number of messages and their sizes, then their
// bytes.
void Write(const RecordedAnswer& answer, std::ostream& output);
// Reads what Write() wrote. Returns INVALID_ARGUMENT if that is not there.
absl::StatusOr<RecordedAnswer> ReadRecordedAnswer(std::istream& input);

}  // namespace linserve
