#include <grpcpp/grpcpp.h>

#include "core/files/safetensors.h"
#include "core/tensor/comparison.h"
#include "inference/grpc_service.grpc.pb.h"
#include "support/golden_case.h"
#include "support/programs.h"
#include "support/served_golden.h"

namespace linserve {
namespace {

void ExpectServes(EmbeddingClient& client, const GoldenCase& golden) {
  for (const SequenceResult& result : Embed(client, golden)) {
    ASSERT_TRUE(result.status.ok()) << result.status;
    for (const std::string& name : golden.outputs()) {
      EXPECT_LE(golden.Distance(name, result.outputs.at(name), result.index), golden.tolerance())
          << name << " of sequence " << result.index;
    }
  }
}

void ExpectServesNearly(EmbeddingClient& client, const GoldenCase& golden) {
  for (const SequenceResult& result : Embed(client, golden)) {
    ASSERT_TRUE(result.status.ok()) << result.status;
    const std::string name = golden.outputs()[0];
    const auto comparison = Compare(result.outputs.at(name), golden.Output(name, result.index));
    ASSERT_TRUE(comparison.ok()) << comparison.status();
    EXPECT_GE(comparison->smallest_cosine, 0.999) << "sequence " << result.index;
  }
}

// Expects that the program linserve-client embeds the case's file as it is.
void ExpectEmbedsTheFile(const RunningServer& server, const GoldenCase& golden) {
  const TempDir temporary;
  const std::string output = temporary.File("out.safetensors");
  Arguments arguments = {"embed",         golden.directory() + "/io.safetensors",
                         "--batched",     "--target",
                         server.target(), "--model",
                         golden.name(),   "--pooling",
                         "none",          "--output",
                         output};
  const std::vector<std::string> names = golden.outputs();
  for (const std::string& name : names) {
    arguments.insert(arguments.end(), {"--output-name", name});
  }
  const Outcome outcome = RunClient(arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto results = ReadSafetensors(output);
  ASSERT_TRUE(results.ok()) << results.status();
  for (size_t i = 0; i < golden.sequences(); ++i) {
    for (const std::string& name : names) {
      const std::string key = std::to_string(i) + (names.size() > 1 ? "." + name : "");
      ASSERT_TRUE(results->tensors.contains(key)) << key;
      EXPECT_LE(golden.Distance(name, results->tensors.at(key), i), golden.tolerance()) << key;
    }
  }
}

using InferenceStub = inference::GRPCInferenceService::Stub;

// Has the server load or unload a model, by the call that does it.
template <typename Asked, typename Answer>
grpc::Status Control(InferenceStub& stub,
                     grpc::Status (InferenceStub::*call)(grpc::ClientContext*, const Asked&,
                                                         Answer*),
                     const std::string& model) {
  grpc::ClientContext context;
  Asked request;
  Answer response;
  request.set_model_name(model);
  return (stub.*call)(&context, request, &response);
}

// Has a simulated device serve the cases, each alone: with every launch it opens all that it holds,
// and with all models that took most of the time. It does not warm up either.
template <typename Expect>
void ServeOnADevice(const std::vector<GoldenCase>& cases, Arguments arguments,
                    const Expect& expect) {
  const TempDir repository;
  LinkCases({cases.front()}, repository);
  const Arguments more = {"--allow-model-control", "true", "--threads", "1",
                          "--follow-links",        "true", "--warmup",  "false"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  RunningServer server(repository.File("."), arguments);
  ASSERT_TRUE(server.ready());
  EmbeddingClient client(server.client_options());
  const auto stub = inference::GRPCInferenceService::NewStub(
      grpc::CreateChannel(server.target(), grpc::InsecureChannelCredentials()));
  for (const GoldenCase& golden : cases) {
    SCOPED_TRACE(golden.name());
    if (golden.name() != cases.front().name()) LinkCases({golden}, repository);
    const grpc::Status loaded = Control(*stub, &InferenceStub::RepositoryModelLoad, golden.name());
    ASSERT_TRUE(loaded.ok()) << loaded.error_message();
    expect(client, golden);
    EXPECT_TRUE(Control(*stub, &InferenceStub::RepositoryModelUnload, golden.name()).ok());
  }
  EXPECT_EQ(server.Stop(), 0);
}

// Returns the cases for a padding. The packages' own is another computation, so a case belongs to
// it or to all others.
std::vector<GoldenCase> CasesFor(const std::string& padding) {
  const bool zeros = padding == "zeros";
  std::vector<GoldenCase> cases = GoldenCases(GoldensDirectory());
  std::erase_if(cases, [&](const GoldenCase& golden) { return golden.needs_zeros() != zeros; });
  return cases;
}

class GoldenServeTest : public ::testing::TestWithParam<std::string> {};

// All cases are served as one repository.
TEST_P(GoldenServeTest, GivesThePackagesNumbers) {
  const std::vector<GoldenCase> cases = CasesFor(GetParam());
  const TempDir repository;
  LinkCases(cases, repository);
  // What is the same in every padding is done in one.
  const bool more = GetParam() == "packed" || GetParam() == "zeros";
  RunningServer server(repository.File("."),
                       {"--padding", GetParam(), "--dtype", "f32", "--threads", "1",
                        "--follow-links", "true", "--warmup", more ? "true" : "false"});
  ASSERT_TRUE(server.ready());
  EmbeddingClient client(server.client_options());
  for (const GoldenCase& golden : cases) {
    SCOPED_TRACE(golden.name());
    ExpectServes(client, golden);
    if (more) ExpectEmbedsTheFile(server, golden);
  }
  EXPECT_EQ(server.Stop(), 0);
}

INSTANTIATE_TEST_SUITE_P(Padding, GoldenServeTest,
                         ::testing::Values("packed", "bucket", "fixed", "zeros"),
                         [](const auto& padding) { return padding.param; });

class GoldenServeDeviceTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenServeDeviceTest, GivesThePackagesNumbersOnADevice) {
  const std::string device = GetParam() == "zeros" ? "simulated:1" : "simulated";
  ServeOnADevice(CasesFor(GetParam()),
                 {"--padding", GetParam(), "--device", device, "--dtype", "f32"}, &ExpectServes);
}

INSTANTIATE_TEST_SUITE_P(Padding, GoldenServeDeviceTest,
                         ::testing::Values("packed", "bucket", "zeros"),
                         [](const auto& padding) { return padding.param; });

// F16 has few numbers, so that what is large in F32 is infinite there, or refused by a GPU.
TEST(GoldenServe, GivesNearlyThePackagesNumbersInF16OnADevice) {
  std::vector<GoldenCase> cases = CasesFor("packed");
  std::erase_if(cases, [](const GoldenCase& golden) { return !golden.compares_in_16_bits(); });
  ServeOnADevice(cases, {"--padding", "packed", "--device", "simulated:1", "--dtype", "f16"},
                 &ExpectServesNearly);
}

}  // namespace
}  // namespace linserve
