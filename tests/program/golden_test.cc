#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/safetensors.h"
#include "program/programs.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;

// The golden cases in the directory whose names begin with one of the packages built so far.
std::vector<std::string> CasesIn(const fs::path& root) {
  std::vector<std::string> cases;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("linformer-")) cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

// More cases lie beside a developer's checkout.
fs::path SharedGoldens() {
  return fs::path(GoldensDirectory()) / "../../../../shared/reference/goldens";
}

double ToleranceOf(const std::string& directory) {
  return nlohmann::json::parse(ReadAll(directory + "/config.json")).at("tolerance");
}

TensorMap TensorsOf(const std::string& path) {
  auto file = ReadSafetensors(path);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? file->tensors : TensorMap();
}

// The largest distance of two elements; infinite if the shapes differ or a number is none.
double Distance(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != DType::kF32 || b.dtype() != DType::kF32) {
    ADD_FAILURE() << ToString(a.shape()) << " and " << ToString(b.shape());
    return std::numeric_limits<double>::infinity();
  }
  double distance = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double difference = std::abs(double{a.data<float>()[i]} - double{b.data<float>()[i]});
    if (!(difference <= distance)) distance = difference;
  }
  return distance;
}

Tensor Element(const Tensor& batch, int64_t index) {
  const Tensor row = batch.Rows(index, index + 1);
  return row.Reshaped(Shape(row.shape().begin() + 1, row.shape().end()));
}

std::vector<int64_t> LengthsOf(const TensorMap& io) {
  const Tensor& x = io.at("input.x");
  const auto count = static_cast<size_t>(x.shape()[0]);
  const auto lengths = io.find("input.lengths");
  if (lengths == io.end()) return std::vector<int64_t>(count, x.shape()[1]);
  std::vector<int64_t> values(count);
  ConvertToInt64(lengths->second.dtype(), lengths->second.bytes(), lengths->second.elements(),
                 values.data());
  return values;
}

// Each row of the batch as a sequence of its own length.
EmbedCall CallOf(const std::string& model, const TensorMap& io) {
  EmbedCall call;
  call.model = model;
  call.options.outputs = {"y"};
  const std::vector<int64_t> lengths = LengthsOf(io);
  for (size_t i = 0; i < lengths.size(); ++i) {
    NamedSequence sequence{std::to_string(i), {}};
    for (const auto& [name, tensor] : io) {
      if (!name.starts_with("input.") || name == "input.lengths") continue;
      const Tensor element = Element(tensor, static_cast<int64_t>(i));
      const std::string argument = name.substr(6);
      sequence.inputs[argument] = argument == "x" ? element.Rows(0, lengths[i]) : element;
    }
    call.sequences.push_back(std::move(sequence));
  }
  return call;
}

void ExpectServes(EmbeddingClient& client, const std::string& directory) {
  const TensorMap io = TensorsOf(directory + "/io.safetensors");
  const auto results = client.Embed(CallOf(fs::path(directory).filename(), io));
  ASSERT_TRUE(results.ok()) << results.status();
  const std::vector<int64_t> lengths = LengthsOf(io);
  for (size_t i = 0; i < results->size(); ++i) {
    ASSERT_TRUE(results->at(i).status.ok()) << results->at(i).status;
    const Tensor expected = Element(io.at("output.y"), static_cast<int64_t>(i));
    EXPECT_LE(Distance(results->at(i).outputs.at("y"), expected.Rows(0, lengths[i])),
              ToleranceOf(directory))
        << "sequence " << i;
  }
}

class GoldenRunTest : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(GoldenRunTest, GivesThePackagesNumbers) {
  const auto& [directory, padding] = GetParam();
  const TempDir temporary;
  const std::string output = temporary.File("out.safetensors");
  const Outcome outcome =
      RunLinserve({"run", "--model", directory, "--input", directory + "/io.safetensors",
                   "--output", output, "--padding", padding, "--threads", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const TensorMap outputs = TensorsOf(output);
  const TensorMap io = TensorsOf(directory + "/io.safetensors");
  ASSERT_TRUE(outputs.contains("output.y"));
  EXPECT_LE(Distance(outputs.at("output.y"), io.at("output.y")), ToleranceOf(directory));
}

INSTANTIATE_TEST_SUITE_P(Linformer, GoldenRunTest,
                         ::testing::Combine(::testing::ValuesIn(CasesIn(GoldensDirectory())),
                                            ::testing::Values("packed", "bucket", "fixed")),
                         [](const auto& golden) {
                           std::string name = fs::path(std::get<0>(golden.param)).filename();
                           name += "_" + std::get<1>(golden.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class GoldenServeTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Serves all cases of the directory as one repository, and asks for each.
  static void ExpectServesAll(const fs::path& root, const std::string& padding) {
    const TempDir repository;
    const std::vector<std::string> cases = CasesIn(root);
    ASSERT_FALSE(cases.empty());
    for (const std::string& directory : cases) {
      fs::create_directory_symlink(fs::canonical(directory),
                                   repository.File(fs::path(directory).filename()));
    }
    RunningServer server(repository.File("."), {"--padding", padding, "--threads", "1"});
    ASSERT_TRUE(server.ready());
    EmbeddingClient client(server.client_options());
    for (const std::string& directory : cases) {
      SCOPED_TRACE(directory);
      ExpectServes(client, directory);
    }
    EXPECT_EQ(server.Stop(), 0);
  }
};

TEST_P(GoldenServeTest, GivesThePackagesNumbers) {
  ExpectServesAll(GoldensDirectory(), GetParam());
}

TEST_P(GoldenServeTest, GivesTheNumbersOfTheCasesBesideTheCheckout) {
  if (!fs::is_directory(SharedGoldens())) GTEST_SKIP() << "there are none";
  ExpectServesAll(SharedGoldens(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Linformer, GoldenServeTest, ::testing::Values("packed", "bucket", "fixed"),
                         [](const auto& golden) { return golden.param; });

}  // namespace
}  // namespace linserve
