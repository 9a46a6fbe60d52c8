#pragma once

#include <sys/types.h>

#include <iosfwd>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "client/null_server.h"
#include "core/descriptor.h"

namespace linserve {

// A NullServer in a process of its own, which ends with this object, or with this process.
class NullServerProcess {
 public:
  // Runs this program's command null-server. INTERNAL: it did not start.
  static absl::StatusOr<std::unique_ptr<NullServerProcess>> Start(const RecordedAnswer& answer);
  ~NullServerProcess();

  std::string target() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  NullServerProcess(pid_t process, Descriptor socket)
      : process_(process), socket_(std::move(socket)) {}

  pid_t process_;
  Descriptor socket_;  // its standard input and output, at whose end it ends
  int port_ = 0;
};

// How the process is told the answer: the number of messages and their sizes, then their bytes.
void Write(const RecordedAnswer& answer, std::ostream& output);
// INVALID_ARGUMENT if that is not there.
absl::StatusOr<RecordedAnswer> ReadRecordedAnswer(std::istream& input);

}  // namespace linserve
