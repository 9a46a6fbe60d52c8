#include "client/commands/embed_job.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "client/library/embed_chunks.h"
#include "core/threads/mutex.h"

namespace linserve {
namespace {

// A sequence needs so many bytes in a message besides those of its tensors: names, shapes, lengths.
constexpr size_t kOverheadBytes = 256;

size_t WireSize(const InputSequence& sequence) {
  size_t bytes = sequence.id.size() + sequence.text.size() + kOverheadBytes;
  for (const auto& [name, tensor] : sequence.inputs) bytes += tensor.byte_size();
  return bytes;
}

// Puts results, which come in any order, back into the order of their sequences.
class Reorderer {
 public:
  Reorderer(size_t count, const std::function<void(const JobResult&)>& on_result)
      : on_result_(on_result), waiting_(count) {}

  void Add(JobResult result) {
    const MutexLock lock(mutex_);
    const size_t index = result.result.index;
    waiting_[index] = std::move(result);
    for (; next_ < waiting_.size() && waiting_[next_]; ++next_) {
      on_result_(*waiting_[next_]);
      waiting_[next_].reset();
    }
  }

 private:
  Mutex mutex_;
  const std::function<void(const JobResult&)>& on_result_;
  std::vector<std::optional<JobResult>> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
};

class Job {
 public:
  Job(EmbeddingClient& client, const EmbedJobOptions& options, const InputSequences& sequences,
      const std::function<void(const JobResult&)>& on_result)
      : client_(client),
        options_(options),
        sequences_(sequences),
        results_(sequences.size(), on_result) {}

  void Run() {
    groups_ = Groups();
    std::vector<std::jthread> threads;
    const size_t count = std::min(std::max<size_t>(options_.in_flight, 1), groups_.size());
    for (size_t i = 0; i < count; ++i) threads.emplace_back([this] { Work(); });
  }

 private:
  std::vector<Group> Groups() const {
    if (options_.one_request) return {{0, sequences_.size()}};
    std::vector<size_t> sizes;
    for (const InputSequence& sequence : sequences_) sizes.push_back(WireSize(sequence));
    return CutIntoGroups(sizes, options_.batch, options_.batch_bytes);
  }

  void Work() {
    for (size_t i = next_group_++; i < groups_.size(); i = next_group_++) Embed(groups_[i]);
  }

  void Embed(Group group) {
    EmbedCall call{.model = options_.model,
                   .version = options_.version,
                   .options = options_.options,
                   .priority = options_.priority,
                   .truncation = options_.truncation,
                   .prompt_name = options_.prompt_name,
                   .chunk_bytes = options_.one_request ? 0 : options_.chunk_bytes};
    std::vector<size_t> indices;
    for (size_t i = group.first; i < group.second; ++i) {
      const InputSequence& sequence = sequences_[i];
      if (sequence.status.ok()) {
        indices.push_back(i);
        call.sequences.push_back({sequence.id, sequence.inputs});
        if (sequence.inputs.empty()) call.sequences.back().text = sequence.text;
      } else {
        FailWith(i, sequence.status);
      }
    }
    if (indices.empty()) return;
    if (options_.on_progress && GoesInChunks(call, {0})) {
      call.on_progress = [&](EmbedProgress progress) {
        progress.index = indices[progress.index];
        const MutexLock one_after_the_other(progress_mutex_);
        options_.on_progress(progress);
      };
    }
    Send(call, indices);
  }

  void Send(const EmbedCall& call, const std::vector<size_t>& indices) {
    const auto sent = std::chrono::steady_clock::now();
    std::vector<bool> answered(indices.size());
    absl::Status status = Unavailable();
    if (status.ok()) {
      status = client_.Embed(call, [&](SequenceResult result) {
        answered[result.index] = true;
        result.index = indices[result.index];
        results_.Add({std::move(result), std::chrono::steady_clock::now() - sent});
      });
    }
    if (absl::IsUnavailable(status)) SetUnavailable(status);
    for (size_t i = 0; i < indices.size(); ++i) {
      if (!answered[i]) FailWith(indices[i], status);
    }
  }

  void FailWith(size_t index, const absl::Status& status) {
    JobResult failure;
    failure.result.index = index;
    failure.result.id = sequences_[index].id;
    failure.result.status = status;
    results_.Add(std::move(failure));
  }

  absl::Status Unavailable() {
    const MutexLock lock(mutex_);
    return unavailable_;
  }

  void SetUnavailable(const absl::Status& status) {
    const MutexLock lock(mutex_);
    unavailable_ = status;
  }

  EmbeddingClient& client_;
  const EmbedJobOptions& options_;
  const InputSequences& sequences_;
  Reorderer results_;
  std::vector<Group> groups_;
  std::atomic<size_t> next_group_ = 0;
  Mutex progress_mutex_;
  Mutex mutex_;
  absl::Status unavailable_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::vector<Group> CutIntoGroups(const std::vector<size_t>& sizes, size_t max_sequences,
                                 size_t max_bytes) {
  std::vector<Group> groups;
  size_t bytes = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool full =
        groups.empty() || i - groups.back().first >= max_sequences || bytes + sizes[i] > max_bytes;
    if (full) {
      groups.emplace_back(i, i);
      bytes = 0;
    }
    groups.back().second = i + 1;
    bytes += sizes[i];
  }
  return groups;
}

void RunEmbedJob(EmbeddingClient& client, const EmbedJobOptions& options,
                 const InputSequences& sequences,
                 const std::function<void(const JobResult&)>& on_result) {
  Job(client, options, sequences, on_result).Run();
}

}  // namespace linserve
