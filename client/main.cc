#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <vector>

#include "client/commands.h"
#include "core/pooling.h"

namespace linserve {

ClientOptions GlobalOptions::ToClientOptions() const {
  ClientOptions options;
  options.target = target;
  options.timeout = std::chrono::milliseconds(std::llround(timeout_s * 1000));
  options.protocol = protocol == "oip" ? Protocol::kOip : Protocol::kLinserve;
  options.vocabulary = vocabulary;
  return options;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "linserve-client: %s\n", status.ToString().c_str());
  return EXIT_FAILURE;
}

void ModelChoice::AddTo(CLI::App& app) {
  app.add_option("--model", model, "Name of the model; needed if the server has several");
  app.add_option("--version", version, "Version of the model (default: the latest)");
  AddResultOptions(app);
  app.add_option("--priority", priority, "Of those that wait, 1 go first and 3 last")
      ->check(CLI::Range(1, 3))
      ->capture_default_str();
}

void ModelChoice::AddResultOptions(CLI::App& app) {
  app.add_option("--output-name", outputs,
                 "Output of the model, see `models` (default: its first; may be repeated)")
      ->allow_extra_args(false);
  app.add_option("--pooling", pooling, "How the rows of a sequence become one vector")
      ->check(CLI::IsMember(std::vector<std::string>(kPoolingNames.begin(), kPoolingNames.end())))
      ->capture_default_str();
  app.add_flag("--normalize", normalize, "Divide each resulting vector by its 2-norm");
  app.add_option(
         "--dtype", dtype,
         "Type of the results on the wire and in files; i8: on the wire, with a scale a row, "
         "and f32 in files")
      ->check(CLI::IsMember({"f32", "f16", "bf16", "i8"}))
      ->capture_default_str();
}

OutputOptions ModelChoice::ToOutputOptions() const {
  OutputOptions options;
  options.outputs = outputs;
  options.pooling = PoolingFromName(pooling).value_or(Pooling::kNone);  // checked when parsed
  options.normalize = normalize;
  const std::map<std::string, DType> dtypes = {
      {"f32", DType::kF32}, {"f16", DType::kF16}, {"bf16", DType::kBF16}, {"i8", DType::kI8}};
  options.dtype = dtypes.at(dtype);
  return options;
}

namespace {

constexpr int kUsageError = 2;

int Main(int argc, char** argv) {
  CLI::App app("The client of a linserve server: files to embeddings, and a load generator.");
  app.footer(
      "Examples:\n"
      "  linserve-client health\n"
      "  linserve-client models --target gpu-host:8500\n"
      "  linserve-client embed sentences.txt > embeddings.jsonl\n"
      "  linserve-client load --rate 200 --duration 30\n"
      "`linserve-client SUBCOMMAND --help` shows the options of each.");
  app.require_subcommand(1);
  app.fallthrough();
  GlobalOptions globals;
  app.add_option("--target", globals.target, "The server: HOST:PORT, dns:///NAME:PORT, unix:PATH")
      ->envname("LINSERVE_GRPC_ADDRESS")
      ->capture_default_str();
  app.add_option("--timeout", globals.timeout_s, "Seconds for one call, its retries included")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  app.add_option("--protocol", globals.protocol,
                 "linserve, or oip: the Open Inference Protocol, for this server and for others")
      ->check(CLI::IsMember({"linserve", "oip"}))
      ->capture_default_str();
  app.add_option("--vocabulary", globals.vocabulary,
                 "Token ids of a model on another server, which does not tell how many it has")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  Command command;
  AddEmbedCommand(app, globals, command);
  AddCompareCommand(app, globals, command);
  AddLoadCommand(app, globals, command);
  AddModelsCommand(app, globals, command);
  AddHealthCommand(app, globals, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? EXIT_SUCCESS : kUsageError;
  }
  return command();
}

}  // namespace
}  // namespace linserve

int main(int argc, char** argv) {
  try {
    return linserve::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "linserve-client: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
