#include "support/programs.h"

#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/http_client.h"
#include "support/paths.h"
#include "support/wait_until.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;

Outcome Run(const std::string& program, const Arguments& arguments, const Variables& variables,
            const std::string& standard_input) {
  Arguments command = {program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Process process(command, variables, standard_input);
  const int code = process.Wait();
  return {code, process.out(), process.err()};
}

// Returns the log line of the message "ready".
nlohmann::json ReadyLine(const std::string& log) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    auto event = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (event.is_object() && event.value("message", "") == "ready") return event;
  }
  return {};
}

}  // namespace

Outcome RunLinserve(const Arguments& arguments, const Variables& variables) {
  return Run(ServerProgram(), arguments, variables, "");
}

Outcome RunClient(const Arguments& arguments, const std::string& standard_input) {
  return Run(ClientProgram(), arguments, {}, standard_input);
}

bool CpuComputesIn(const std::string& dtype) {
  static const std::string verified =
      RunLinserve({"inspect", "--verify", "--model", GoldensDirectory() + "/linformer-lm-basic"})
          .out;
  return verified.find(dtype + " to f32") != std::string::npos;
}

void InitModel(const std::string& directory) {
  static const TempDir made;
  const std::string model = made.File("model");
  if (!fs::exists(model)) {
    const Outcome outcome = RunLinserve(
        {"init", "--architecture", "linformer.LinformerLM", "--seed", "3", "--output", model,
         "--params",
         R"({"num_tokens": 256, "dim": 16, "seq_len": 64, "depth": 1, "k": 8, "heads": 2})"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
  fs::create_directories(directory);
  fs::copy(model, directory, fs::copy_options::recursive);
}

std::string GoldensDirectory() { return DataFile("goldens"); }

void CopyGolden(const std::string& name, const std::string& directory) {
  fs::create_directories(directory);
  for (const char* file : {"config.json", "model.safetensors", "io.safetensors"}) {
    fs::copy_file(fs::path(GoldensDirectory()) / name / file, fs::path(directory) / file);
  }
}

RunningServer::RunningServer(const std::string& repository, const Arguments& more) {
  Arguments command = {ServerProgram(),  "serve",       "--model-repository", repository,
                       "--grpc-address", "127.0.0.1:0", "--http-address",     "127.0.0.1:0",
                       "--log-format",   "json"};
  command.insert(command.end(), more.begin(), more.end());
  process_ = std::make_unique<Process>(command);
  nlohmann::json line;
  // The end of the line may come later than the text.
  const bool ready = process_->WaitForOut("\"message\":\"ready\"") &&
                     WaitUntil([&] { return !(line = ReadyLine(process_->out())).is_null(); });
  EXPECT_TRUE(ready) << log();
  if (!ready) return;
  grpc_port_ = line.at("grpc_port");
  http_port_ = line.at("http_port");
}

ClientOptions RunningServer::client_options() const {
  ClientOptions options;
  options.target = target();
  options.timeout = std::chrono::minutes(1);
  return options;
}

std::string RunningServer::Get(const std::string& path, int status) const {
  httplib::Client client = LocalHttpClient(http_port_);
  const auto response = client.Get(path.c_str());
  EXPECT_TRUE(response) << path;
  if (!response) return "";
  EXPECT_EQ(response->status, status) << path << ": " << response->body;
  return response->body;
}

bool RunningServer::WaitFor(const std::string& series, double value) const {
  return WaitUntil([&] { return Scrape()[series] == value; });
}

int RunningServer::Stop() {
  process_->Signal(SIGTERM);
  return process_->Wait();
}

}  // namespace linserve
