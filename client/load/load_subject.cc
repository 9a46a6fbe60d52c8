#include "client/load/load_subject.h"

#include <cstdio>
#include <map>
#include <stop_token>
#include <thread>
#include <utility>

#include "client/load/null_server/null_server_process.h"
#include "client/terminal/progress.h"
#include "core/status/retry_delay.h"

namespace linserve {
namespace {

void ShowProgress(const std::stop_token& stop, const LoadGenerator& generator) {
  ProgressLine line;
  if (!line.shown()) return;
  uint64_t answered_before = 0;
  for (int tick = 1; !stop.stop_requested(); ++tick) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (tick % 10 != 0) continue;
    const LoadProgress now = generator.progress();
    char text[160];
    std::snprintf(text, sizeof(text), "%s %.0f s: %llu requests/s, %llu failed, %zu in flight",
                  now.warming_up ? "warming up" : "measuring",
                  std::chrono::duration<double>(now.elapsed).count(),
                  static_cast<unsigned long long>(now.answered - answered_before),
                  static_cast<unsigned long long>(now.failed), now.in_flight);
    line.Draw(text);
    answered_before = now.answered;
  }
}

}  // namespace

absl::StatusOr<LoadSubject> LoadSubject::Connect(std::string name, const ClientOptions& options,
                                                 size_t connections, const std::string& model,
                                                 int64_t version) {
  LoadSubject subject(std::move(name), options);
  for (size_t i = 0; i < connections; ++i) {
    subject.clients_.push_back(std::make_unique<EmbeddingClient>(options));
    auto found = subject.clients_.back()->GetModel(model, version);
    if (!found.ok()) return found.status();
    subject.model_ = *std::move(found);
  }
  return subject;
}

absl::Status LoadSubject::Prepare(const LengthDistribution& lengths,
                                  const LoadInputOptions& input) {
  const auto calls = MakeLoadCalls(model_, lengths, input);
  if (!calls.ok()) return calls.status();
  for (const EmbedCall& call : *calls) {
    calls_.emplace_back(call, options_.protocol);
    if (absl::Status status = calls_.back().fault(); !status.ok()) return status;
  }
  if (!first_) first_ = calls->front();
  return absl::OkStatus();
}

absl::Status LoadSubject::Prepare(const std::vector<TracedRequest>& trace,
                                  const LoadInputOptions& input) {
  // Requests of one length have the same input.
  LoadInputOptions one = input;
  one.requests = 1;
  std::map<int64_t, size_t> of_length;
  for (const TracedRequest& request : trace) {
    const auto [place, is_new] = of_length.emplace(request.length, calls_.size());
    order_.push_back(place->second);
    if (!is_new) continue;
    absl::Status status = Prepare(LengthDistribution::Fixed(request.length), one);
    if (!status.ok()) return WithPrefix(status, "a request of the trace: ");
  }
  return absl::OkStatus();
}

absl::Status LoadSubject::MeasureCeiling(const LoadOptions& options,
                                         const std::atomic<bool>& stop) {
  const auto answer = RecordAnswer(options_, *first_);
  if (!answer.ok()) return answer.status();
  const auto server = NullServerProcess::Start(*answer);
  if (!server.ok()) return server.status();
  ClientOptions beside;
  beside.target = (*server)->target();
  beside.protocol = options_.protocol;
  Clients clients;
  for (size_t i = 0; i < clients_.size(); ++i) {
    clients.push_back(std::make_unique<EmbeddingClient>(beside));
  }
  const LoadReport report = Run(clients, options, stop);
  if (stop) return absl::OkStatus();
  if (report.failed() > 0) {
    return absl::InternalError("the client's ceiling cannot be measured: " + report.first_error);
  }
  ceiling_ = report.Rate(report.within.requests);
  return absl::OkStatus();
}

void LoadSubject::Measure(double load, const LoadOptions& options, const std::atomic<bool>& stop) {
  SweepStep step{load, Run(clients_, options, stop)};
  step.report.ceiling = ceiling_;
  step.report.server_tells = options_.protocol == Protocol::kLinserve;
  if (!steps_.empty() && step.report.interrupted && step.report.requests == 0) return;
  steps_.push_back(std::move(step));
}

LoadReport LoadSubject::Run(const Clients& clients, const LoadOptions& options,
                            const std::atomic<bool>& stop) {
  LoadGenerator generator(options, [&](uint64_t n, EmbedCallback done) {
    const size_t call = order_.empty() ? n % calls_.size() : order_[n % order_.size()];
    return clients[n % clients.size()]->EmbedAsync(calls_[call], std::move(done));
  });
  const std::jthread progress(
      [&generator](const std::stop_token& token) { ShowProgress(token, generator); });
  return generator.Run(stop);
}

}  // namespace linserve
