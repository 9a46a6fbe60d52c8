#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "support/paths.h"
#include "support/test_files.h"
#include "telemetry/metrics.h"
#include "telemetry/scraped.h"

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

// Adds what the first group of a pattern finds in a text.
void Find(const std::string& pattern, const std::string& text, std::set<std::string>& found) {
  const std::regex expression(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) {
    found.insert((*at)[1]);
  }
}

// Returns the keys in the tables under "## Log".
std::set<std::string> DocumentedKeys() {
  std::ifstream readme(SourceFile("server/telemetry/README.md"));
  std::set<std::string> keys;
  bool in_section = false;
  for (std::string line; std::getline(readme, line);) {
    if (line.starts_with("## ")) in_section = line == "## Log";
    if (in_section && line.starts_with("| "))
      Find("`(\\w+)`", line.substr(0, line.find(" | ")), keys);
  }
  return keys;
}

// Returns the keys of the fields that the server's sources log.
std::set<std::string> LoggedKeys() {
  std::set<std::string> keys;
  for (const auto& file : std::filesystem::recursive_directory_iterator(SourceFile("server"))) {
    if (file.path().extension() != ".cc") continue;
    const std::string text = ReadAll(file.path());
    for (const std::string begin : {" Log(", "LogField "}) {
      for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
        Find("\\{\"(\\w+)\",", text.substr(at, text.find(";\n", at) - at), keys);
      }
    }
  }
  return keys;
}

TEST(Readme, ListsTheKeysOfTheLog) {
  std::set<std::string> keys = LoggedKeys();
  keys.insert({"time", "severity", "message"});
  EXPECT_THAT(DocumentedKeys(), ::testing::ContainerEq(keys));
}

TEST(Readme, ListsTheMetricsThatAreExportedWithTheirTypesAndLabels) {
  Metrics metrics({.version = "1", .commit = "c", .torch = "t"});
  RpcMetrics& rpc = metrics.ForRpc("Embed");
  rpc.Message(Direction::kReceived, 1);
  rpc.FirstResponse({});
  rpc.Sent({});
  rpc.Finished(0, {});
  metrics.ForModel("m", 1).SetLoaded({}, {}, "cpu", 1);
  metrics.Computed("me", 1);
  metrics.HttpReplied(200);
  metrics.SetCertificateExpiry(std::chrono::system_clock::now());
  metrics.SetDeviceFallback("");
  metrics.AddDevice("cuda:0", [] { return DeviceUse(); });

  EXPECT_THAT(DocumentedFamilies(), ::testing::ContainerEq(Scraped(metrics.Scrape()).families));
}

}  // namespace
}  // namespace linserve
