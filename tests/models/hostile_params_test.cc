// What a config.json says of its network is bounded, whatever the architecture and the argument.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/workload/random_item.h"
#include "models/model_fixture.h"
#include "support/paths.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Place = json::json_pointer;

constexpr size_t kLongestMessage = 4 << 10;
// Resident, beyond what there was before. AddressSanitizer keeps half of it, which was freed.
constexpr int64_t kMostKilobytes = 512 << 10;
constexpr double kMostSeconds = 20;  // with sanitizers, which make a second of it

int64_t PeakKilobytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

double ThreadSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Returns each architecture's golden cases that have most arguments: with a wrapper and without,
// causal and not.
std::map<std::string, fs::path> Cases() {
  std::map<std::string, fs::path> cases;
  std::map<std::string, size_t> arguments;
  for (const auto& entry : fs::directory_iterator(DataFile("goldens"))) {
    const json config = json::parse(ReadAll(entry.path() / "config.json"));
    const std::string kind = config["architecture"].get<std::string>() +
                             (config["wrapper"].is_null() ? "" : ", wrapped") +
                             (config["params"].value("causal", false) ? ", causal" : "");
    const size_t count = 1 + config["params"].size();
    if (arguments[kind] >= count) continue;
    arguments[kind] = count;
    cases[kind] = entry.path();
  }
  return cases;
}

class HostileParams : public ModelFixture {
 protected:
  HostileParams() { fs::create_directory(directory_); }

  // Calls `visit` with the configurations of a quarter of the cases, which are drawn, each changed
  // at one argument to so many of the values, which are drawn anew for each.
  template <typename Visit>
  void ForEach(std::vector<json> values, size_t drawn, const Visit& visit) {
    const auto all = Cases();
    std::vector<std::pair<std::string, fs::path>> cases(all.begin(), all.end());
    std::shuffle(cases.begin(), cases.end(), drawing_);
    cases.resize((cases.size() + 3) / 4);
    for (const auto& [kind, path] : cases) {
      for (const char* file : {"model.safetensors", "config.json"}) {
        fs::copy_file(path / file, directory_ + file, fs::copy_options::overwrite_existing);
      }
      const json config = json::parse(ReadAll(directory_ + "config.json"));
      for (const char* object : {"/params", "/wrapper", "/call"}) {
        if (!config[Place(object)].is_object()) continue;
        for (const Place& argument : ArgumentsOf(config, Place(object))) {
          std::shuffle(values.begin(), values.end(), drawing_);
          for (size_t i = 0; i < drawn; ++i) {
            const json& value = values[i];
            json changed = config;
            changed[argument] = value;
            WriteAll(directory_ + "config.json", changed.dump());
            SCOPED_TRACE(kind + " " + argument.to_string() + " = " + value.dump().substr(0, 40));
            const double begin = ThreadSeconds();
            visit();
            EXPECT_LT(ThreadSeconds() - begin, kMostSeconds);
          }
        }
      }
    }
    EXPECT_LT(PeakKilobytes() - peak_, kMostKilobytes);
  }

  // All arguments that an object takes, as the network tells who gives it one that it does not.
  std::vector<Place> ArgumentsOf(json config, const Place& object) const {
    config[object / "no such argument"] = 1;
    WriteAll(directory_ + "config.json", config.dump());
    std::string message(InspectModel(directory_).status().message());
    const std::string begin = "\"no such argument\"; it takes ";
    EXPECT_NE(message.find(begin), std::string::npos) << message;
    std::istringstream names(message.substr(message.find(begin) + begin.size()));
    std::vector<Place> places;
    for (std::string name; std::getline(names >> std::ws, name, ',');) {
      if (name != "none" && name != "type") places.push_back(object / name);
    }
    return places;
  }

  TempDir root_;
  const std::string directory_ = root_.File("model/");
  const int64_t peak_ = PeakKilobytes();
  std::mt19937_64 drawing_{std::random_device()()};  // a failure tells what was drawn
};

TEST_F(HostileParams, EveryArgumentIsRefusedOrTakesLittle) {
  const std::vector<json> values = {0,
                                    -1,
                                    int64_t{1} << 31,
                                    (int64_t{1} << 31) + 1,
                                    int64_t{1} << 62,
                                    uint64_t{1} << 63,
                                    1e300,
                                    std::string(10'000, 'a'),
                                    std::vector<int64_t>(4097, 1),
                                    json::object()};
  ForEach(values, 1, [&] {
    const auto report = InspectModel(directory_);
    EXPECT_TRUE(report.ok() || absl::IsInvalidArgument(report.status())) << report.status();
    EXPECT_LT(report.status().message().size(), kLongestMessage);
    if (!report.ok()) return;
    EXPECT_GT(report->info.bytes, 0);
    EXPECT_GE(report->info.session_bytes, 0);
    EXPECT_GE(report->flops_per_token, 0);
  });
}

TEST_F(HostileParams, WhatIsNotRefusedIsComputedWithLittle) {
  int computed = 0;
  ForEach({int64_t{1} << 31, 512}, 1, [&] {
    const auto model = LoadModel(directory_, {.threads = 1});
    if (!model.ok()) return;
    ++computed;
    // Some models take the first few tokens only, as long as they get nothing else.
    Item item = RandomItem((*model)->info().signature, LengthDistribution::Fixed(5), random_);
    for (auto& [name, input] : item.inputs) {
      if (IsInteger(input.dtype()))
        input = Tensor::FromInts(input.shape(),
                                 std::vector<int64_t>(static_cast<size_t>(input.elements())));
    }
    Compute(**model, {item});
  });
  EXPECT_GT(computed, 0);
}

}  // namespace
}  // namespace linserve
