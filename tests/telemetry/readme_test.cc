#include <gmock/gmock.h>

#include <fstream>
#include <regex>

#include "scraped.h"
#include "support/paths.h"
#include "telemetry/metrics.h"

namespace linserve {
namespace {

// Returns the rows of the table under "## Metrics".
std::map<std::string, Scraped::Family> DocumentedFamilies() {
  std::ifstream readme(SourceFile("server/telemetry/README.md"));
  const std::regex row(R"(\| `(\w+)` \| (\w+) \| ([^|]*)\|.*)");
  const std::regex label("`(\\w+)`");
  std::map<std::string, Scraped::Family> families;
  bool in_section = false;
  for (std::string line; std::getline(readme, line);) {
    if (line.starts_with("## ")) in_section = line == "## Metrics";
    std::smatch cells;
    if (!in_section || !std::regex_match(line, cells, row)) continue;
    Scraped::Family& family = families[cells[1]];
    family.type = cells[2];
    const std::string labels = cells[3];
    for (std::sregex_iterator at(labels.begin(), labels.end(), label), end; at != end; ++at) {
      family.labels.insert((*at)[1]);
    }
  }
  return families;
}

TEST(Readme, ListsTheMetricsThatAreExportedWithTheirTypesAndLabels) {
  Metrics metrics({.version = "1", .commit = "c", .torch = "t"});
  metrics.ForRpc("Embed");
  metrics.ForModel("m", 1).SetLoaded({}, {}, "cpu", 1);
  metrics.SetDeviceFallback("");
  metrics.AddDevice("cuda:0", [] { return DeviceUse(); });

  EXPECT_THAT(DocumentedFamilies(), ::testing::ContainerEq(Scraped(metrics.Scrape()).families));
}

}  // namespace
}  // namespace linserve
