#include <iostream>
#include <istream>

#include "client/commands.h"
#include "client/null_server_process.h"

namespace linserve {
namespace {

int RunNullServer() {
  const auto answer = ReadRecordedAnswer(std::cin);
  if (!answer.ok()) return Fail(answer.status());
  const auto server = NullServer::Start(*answer);
  if (!server.ok()) return Fail(server.status());
  std::cout << (*server)->port() << std::endl;
  while (std::cin.get() != std::istream::traits_type::eof()) {
  }
  return EXIT_SUCCESS;
}

}  // namespace

void AddNullServerCommand(CLI::App& app, Command& command) {
  CLI::App* server = app.add_subcommand(
      "null-server", "What `load --ceiling` starts: answers every call with what it has read");
  server->group("");  // nobody else needs it
  server->callback([&command] { command = RunNullServer; });
}

}  // namespace linserve
