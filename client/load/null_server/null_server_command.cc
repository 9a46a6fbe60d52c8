#include <iostream>
#include <istream>

#include "client/commands/commands.h"
#include "client/load/null_server/null_server_process.h"

namespace linserve {
namespace {

int RunNullServer() {
  const auto answer = ReadRecordedAnswer(std::cin);
  if (!answer.ok()) return FailWith(answer.status());
  const auto server = NullServer::Start(*answer);
  if (!server.ok()) return FailWith(server.status());
  std::cout << (*server)->port() << '\n' << std::flush;
  while (std::cin.get() != std::istream::traits_type::eof()) {
  }
  return EXIT_SUCCESS;
}

}  // namespace

void AddNullServerCommand(CLI::App& app, ChosenCommand& chosen) {
  CLI::App* server = app.add_subcommand(
      "null-server", "What `load --ceiling` starts: answers every call with what it has read");
  server->group("");  // nobody else needs it
  server->callback([&chosen] { chosen = RunNullServer; });
}

}  // namespace linserve
