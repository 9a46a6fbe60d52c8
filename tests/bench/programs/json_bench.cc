// Prints how long each door of REST takes to read JSON of each shape, by its size. A door that
// refuses a shape at its beginning is left out.
#include <chrono>
#include <cstdio>
#include <string>

#include "rest/json_shapes.h"
#include "rest/tei/tei_routes.h"
#include "support/test_server.h"

namespace linserve {
namespace {

double Milliseconds(const JsonDoor& door, const std::vector<HttpRoute>& routes,
                    const std::string& value) {
  const auto begin = std::chrono::steady_clock::now();
  ReadAt(door, routes, value, [] { return false; });
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

void Print() {
  constexpr size_t kMiB = 1 << 20;
  TestServer server;
  auto routes = RestRoutes(server.grpc().context());
  AddTeiRoutes(server.grpc().context(), routes);
  std::printf("%-32s %-28s %8s %8s %8s %8s   ms\n", "shape", "where", "1 MiB", "2 MiB", "4 MiB",
              "8 MiB");
  for (const JsonShape& shape : JsonShapes()) {
    for (const JsonDoor& door : JsonDoors()) {
      const double small = Milliseconds(door, routes, shape.text(kMiB));
      if (small < 0.5) continue;
      std::printf("%-32s %-28s %8.1f", shape.name.c_str(), door.name.c_str(), small);
      for (const size_t size : {2 * kMiB, 4 * kMiB, 8 * kMiB}) {
        std::printf(" %8.1f", Milliseconds(door, routes, shape.text(size)));
      }
      std::printf("\n");
    }
  }
}

}  // namespace
}  // namespace linserve

int main() {
  linserve::Print();
  return 0;
}
