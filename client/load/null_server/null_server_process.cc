#include "client/load/null_server/null_server_process.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <istream>
#include <ostream>
#include <sstream>
#include <string_view>
#include <utility>

namespace linserve {
namespace {

constexpr size_t kMostMessages = 1 << 20;
constexpr size_t kLargestMessage = size_t{1} << 31;

absl::Status NotStarted(const std::string& why) {
  return absl::InternalError("a server to measure the client with did not start: " + why);
}

bool SendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::string ReceiveLine(int socket) {
  std::string line;
  char c = 0;
  while (true) {
    const ssize_t got = ::recv(socket, &c, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || c == '\n') return line;
    line += c;
  }
}

// Runs this program with the socket as its standard input and output. Returns its process id; 0 if
// it cannot run.
pid_t Spawn(int socket) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, socket, STDOUT_FILENO);
  // A signal of the terminal's is for the client, which then ends this process by ending its input.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::array<std::string, 2> words = {"linserve-client", "null-server"};
  std::array<char*, 3> arguments = {words[0].data(), words[1].data(), nullptr};
  pid_t process = 0;
  const int error =
      ::posix_spawn(&process, "/proc/self/exe", &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? process : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NullServerProcess>> NullServerProcess::Start(
    const RecordedAnswer& answer) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return NotStarted("no socket could be made");
  }
  Descriptor own(ends[0]);
  Descriptor others(ends[1]);
  const pid_t process = Spawn(others.get());
  if (process == 0) return NotStarted("this program could not be run once more");
  others.Close();
  std::unique_ptr<NullServerProcess> started(new NullServerProcess(process, std::move(own)));
  std::ostringstream bytes;
  Write(answer, bytes);
  if (!SendAll(started->socket_.get(), bytes.view())) return NotStarted("it took no answer");
  std::istringstream line(ReceiveLine(started->socket_.get()));
  if (!(line >> started->port_)) return NotStarted("it told no port");
  return started;
}

NullServerProcess::~NullServerProcess() {
  socket_.Close();
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Write(const RecordedAnswer& answer, std::ostream& output) {
  output << answer.size();
  for (const std::string& message : answer) output << ' ' << message.size();
  output << '\n';
  for (const std::string& message : answer) output << message;
}

absl::StatusOr<RecordedAnswer> ReadRecordedAnswer(std::istream& input) {
  absl::Status cut_short = absl::InvalidArgumentError(
      "expected an answer on the standard input, as `load --ceiling` gives it");
  size_t messages = 0;
  if (!(input >> messages) || messages > kMostMessages) return cut_short;
  std::vector<size_t> sizes(messages);
  for (size_t& size : sizes) {
    if (!(input >> size) || size > kLargestMessage) return cut_short;
  }
  input.get();
  RecordedAnswer answer;
  for (const size_t size : sizes) {
    std::string& message = answer.emplace_back(size, '\0');
    if (!input.read(message.data(), static_cast<std::streamsize>(size))) return cut_short;
  }
  return answer;
}

}  // namespace linserve
