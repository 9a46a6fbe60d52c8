#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/library/embedding_client.h"
#include "support/process.h"
#include "support/test_files.h"
#include "telemetry/scraped.h"

namespace linserve {

using Arguments = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

// Holds what a program that has ended said.
struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

Outcome RunLinserve(const Arguments& arguments, const Variables& variables = {});
Outcome RunClient(const Arguments& arguments, const std::string& standard_input = "");

// Says whether this CPU has kernels for a type that models are computed in.
bool CpuComputesIn(const std::string& dtype);

// Writes a small Linformer language model of 256 tokens and a length of 64, as a model directory.
void InitModel(const std::string& directory);

// Returns the directory of the golden cases, tests/data/goldens.
std::string GoldensDirectory();

// Copies a golden case to where a test may change it.
void CopyGolden(const std::string& name, const std::string& directory);

// Runs `linserve serve` on free ports. It is ready when this is constructed.
class RunningServer {
 public:
  explicit RunningServer(const std::string& repository, const Arguments& more = {});

  bool ready() const { return grpc_port_ != 0; }
  Process& process() { return *process_; }
  // Returns what it has logged, warnings and errors at the end.
  std::string log() const { return process_->out() + process_->err(); }
  std::string target() const { return "127.0.0.1:" + std::to_string(grpc_port_); }
  int http_port() const { return http_port_; }
  std::string http() const { return "127.0.0.1:" + std::to_string(http_port_); }
  ClientOptions client_options() const;

  // Returns the body of a page, whose status must be `status`.
  std::string Get(const std::string& path, int status = 200) const;
  Scraped Scrape() const { return Scraped(Get("/metrics")); }
  // Waits until a series has the value; returns false if it has not within a minute.
  bool WaitFor(const std::string& series, double value) const;

  // Sends SIGTERM, and returns the exit code.
  int Stop();

 private:
  std::unique_ptr<Process> process_;
  int grpc_port_ = 0;
  int http_port_ = 0;
};

}  // namespace linserve
