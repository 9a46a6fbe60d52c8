#include "client/commands/session_job.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "core/sequence/session_state.h"
#include "core/tensor/stacking.h"

namespace linserve {
namespace {

// A session that is not where it was left is begun again so often.
constexpr int kMostRestarts = 3;

std::string RandomId() {
  std::random_device random;
  std::string id = "linserve-client";
  for (int i = 0; i < 4; ++i) id += "-" + std::to_string(random());
  return id;
}

int64_t RowsOf(const Signature& signature, const InputSequence& sequence) {
  const auto input = sequence.inputs.find(ChunkInput(signature).name);
  if (input == sequence.inputs.end() || input->second.shape().empty()) return 0;
  return input->second.shape()[0];
}

// Sends one sequence.
class SessionJob {
 public:
  SessionJob(EmbeddingClient& client, const SessionJobOptions& options,
             const InputSequence& sequence, std::function<void(int64_t)> on_rows)
      : client_(client), options_(options), sequence_(sequence), on_rows_(std::move(on_rows)) {
    result_.id = sequence.id;
    result_.status = sequence.status;
    if (!sequence.status.ok()) return;
    if (sequence.inputs.empty()) {
      result_.status = absl::InvalidArgumentError(kNoTextInSessions);
    } else if (rows_ == 0) {
      const std::string& name = ChunkInput(options.signature).name;
      result_.status = absl::InvalidArgumentError(
          "input \"" + name + "\", which comes in chunks, is missing or has no rows");
    }
  }

  SequenceResult Run() {
    int restarts = 0;
    while (result_.status.ok() && row_ < std::max<int64_t>(rows_, 1)) {
      const int64_t count = std::min(options_.chunk_rows, rows_ - row_);
      SequenceResult answer = Send(count);
      if (answer.status.ok()) {
        Take(std::move(answer), count);
      } else if (Differs(answer.status) && restarts++ < kMostRestarts) {
        Restart();
      } else {
        result_.status = std::move(answer.status);
      }
    }
    if (result_.status.ok()) Join();
    return std::move(result_);
  }

 private:
  SequenceResult Send(int64_t count) {
    SessionChunk chunk{.id = id_,
                       .start = row_ == 0,
                       .end = row_ + count == rows_,
                       .save = options_.save && row_ + count == rows_};
    if (chunk.start) chunk.state = options_.state;
    if (!chunk.start) chunk.position = position_;
    EmbedCall call{.model = options_.model,
                   .version = options_.version,
                   .options = options_.options,
                   .priority = options_.priority};
    NamedSequence sequence{.id = sequence_.id, .inputs = {}, .session = std::move(chunk)};
    for (const auto& [name, tensor] : sequence_.inputs) {
      // The first chunk brings the inputs that do not come in chunks: a context, or what the server
      // refuses.
      if (name == ChunkInput(options_.signature).name) {
        sequence.inputs[name] = tensor.Rows(row_, row_ + count);
      } else if (row_ == 0) {
        sequence.inputs[name] = tensor;
      }
    }
    call.sequences.push_back(std::move(sequence));
    auto results = client_.Embed(call);
    if (results.ok()) return std::move(results->at(0));
    SequenceResult failed;
    failed.status = results.status();
    return failed;
  }

  // Returns whether the session is not where it was left, so that rows would be missing: the server
  // has forgotten it, or has read a chunk whose answer was lost.
  bool Differs(const absl::Status& status) const {
    const auto position = ResumePosition(status);
    return position && (row_ > 0 || *position > 0);
  }

  void Restart() {
    row_ = 0;
    parts_.clear();
    result_.tokens = 0;
    result_.timing = {};
  }

  void Take(SequenceResult answer, int64_t count) {
    row_ += count;
    position_ = answer.position;
    result_.tokens += answer.tokens;
    result_.timing.queue += answer.timing.queue;
    result_.timing.compute += answer.timing.compute;
    result_.position = answer.position;
    result_.session = std::move(answer.session);
    const bool pooled = options_.options.pooling != Pooling::kNone;
    for (auto& [name, tensor] : answer.outputs) {
      std::vector<Tensor>& parts = parts_[name];
      if (pooled) parts.clear();
      parts.push_back(std::move(tensor));
    }
    on_rows_(row_);
  }

  void Join() {
    for (const auto& [name, parts] : parts_) result_.outputs[name] = Concatenate(parts);
  }

  EmbeddingClient& client_;
  const SessionJobOptions& options_;
  const InputSequence& sequence_;
  const std::function<void(int64_t)> on_rows_;
  const std::string id_ = RandomId();
  const int64_t rows_ = RowsOf(options_.signature, sequence_);
  int64_t row_ = 0;       // next row to be sent
  int64_t position_ = 0;  // position of the session
  std::map<std::string, std::vector<Tensor>> parts_;
  SequenceResult result_;
};

}  // namespace

int64_t TotalRows(const Signature& signature, const InputSequences& sequences) {
  int64_t rows = 0;
  for (const InputSequence& sequence : sequences) rows += RowsOf(signature, sequence);
  return rows;
}

void RunSessionJob(EmbeddingClient& client, const SessionJobOptions& options,
                   const InputSequences& sequences, const std::function<void(int64_t)>& on_rows,
                   const std::function<void(const JobResult&)>& on_result) {
  int64_t before = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const auto begin = std::chrono::steady_clock::now();
    JobResult answer;
    answer.result = SessionJob(client, options, sequences[i], [&](int64_t rows) {
                      on_rows(before + rows);
                    }).Run();
    answer.result.index = i;
    answer.latency = std::chrono::steady_clock::now() - begin;
    before += RowsOf(options.signature, sequences[i]);
    on_result(answer);
  }
}

}  // namespace linserve
