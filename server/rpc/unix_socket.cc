#include "rpc/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "core/files/descriptor.h"

namespace linserve {
namespace {

constexpr mode_t kAll = 0777;

bool IsListenedTo(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof(address.sun_path)) return false;
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* to = reinterpret_cast<const sockaddr*>(&address);
  return probe.get() >= 0 && ::connect(probe.get(), to, sizeof(address)) == 0;
}

}  // namespace

void UnixSocketOptions::Bind(OptionTable& table) {
  table.Text("grpc_unix_socket", path,
             "Path of a Unix socket for callers on this machine, beside the address; empty: none");
  table.Parsed(
      "grpc_unix_socket_mode",
      [this](const std::string& text) {
        unsigned parsed = 0;
        const char* end = text.data() + text.size();
        const auto [last, error] = std::from_chars(text.data(), end, parsed, /*base=*/8);
        if (error != std::errc() || last != end || parsed > kAll) {
          return absl::InvalidArgumentError("expected permissions such as 0600 or 0660");
        }
        mode = parsed;
        return absl::OkStatus();
      },
      [this] {
        std::array<char, 8> text{};
        std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode));
        return std::string(text.data());
      },
      "Permissions of that socket, as chmod takes them: whoever may write to it may call; 0600: "
      "the server's user alone, 0660: also its group, 0666: everybody");
}

absl::Status UnixSocketOptions::CheckFree() const {
  if (path.empty() || !IsListenedTo(path)) return absl::OkStatus();
  return absl::UnavailableError("another program listens on the Unix socket " + path +
                                "; choose another with --grpc-unix-socket");
}

ModeOfNewFiles::ModeOfNewFiles(mode_t mode) : before_(::umask(kAll & ~mode)) {}

ModeOfNewFiles::~ModeOfNewFiles() { ::umask(before_); }

}  // namespace linserve
