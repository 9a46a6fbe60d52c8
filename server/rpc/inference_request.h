#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/item.h"
#include "core/mutex.h"
#include "engine/repository.h"
#include "inference/grpc_service.pb.h"
#include "rpc/embed_request.h"
#include "telemetry/metrics.h"

namespace linserve {

// The version that a request names: 0, the latest, if it names none. INVALID_ARGUMENT if it is no
// number.
absl::StatusOr<int64_t> VersionOf(const std::string& text);

// The model that a request of the Open Inference Protocol is for. NOT_FOUND in Triton's words.
absl::StatusOr<std::shared_ptr<const ServedModel>> FindModel(const ModelRepository& repository,
                                                             const std::string& name,
                                                             const std::string& version);

// As Triton has it: with the request's id before the message.
absl::Status WithRequestId(const absl::Status& status, const std::string& id);

// One ModelInferRequest, from its submission to its answer: a whole batch, cut into sequences as
// `linserve run` cuts a file, which the engine computes in whatever company, and joined again. The
// first fault of a sequence is the request's, and what of it is still queued is dropped.
class InferRequestState : public ResultSink,
                          public std::enable_shared_from_this<InferRequestState> {
 public:
  using Done = std::function<void(const absl::Status&, inference::ModelInferResponse)>;

  // `done` is called exactly once, on any thread, unless Submit() fails. `abandoned` tells whether
  // the caller has left.
  InferRequestState(RpcMetrics& metrics, std::string id, TimePoint deadline, Done done,
                    std::function<bool()> abandoned);
  ~InferRequestState() override;

  // Takes the message over. An error is the answer, and the caller gives it.
  absl::Status Submit(const ServiceContext& context, inference::ModelInferRequest message);

  // How long a refused caller should wait before it tries again.
  std::chrono::milliseconds RetryDelay() const { return retry_delay_; }

  void Deliver(size_t index, absl::StatusOr<ItemResult> result) override;
  bool Abandoned() const override;

 private:
  absl::StatusOr<std::vector<Item>> Prepare(
      const ServedModel& model, const std::shared_ptr<const inference::ModelInferRequest>& message);
  absl::StatusOr<inference::ModelInferResponse> Response(
      const std::vector<TensorMap>& outputs) const;

  RpcMetrics& metrics_;
  const Done done_;
  const std::function<bool()> abandoned_;
  const std::string id_;
  TimePoint deadline_;
  const TimePoint start_ = std::chrono::steady_clock::now();
  std::chrono::milliseconds retry_delay_{10};

  // Set by Submit(), before the engine has the sequences.
  std::string answer_id_;
  std::string model_name_;
  std::string model_version_;
  const Signature* signature_ = nullptr;  // of the engine, which outlives what it delivers
  OutputOptions options_;
  std::map<char, int64_t> padded_;
  int64_t max_bytes_ = 0;  // of an answer

  mutable Mutex mutex_;
  std::vector<TensorMap> outputs_ LINSERVE_GUARDED_BY(mutex_);  // of each sequence
  size_t sequences_ LINSERVE_GUARDED_BY(mutex_) = 0;
  size_t unanswered_ LINSERVE_GUARDED_BY(mutex_) = 0;
  bool answered_ LINSERVE_GUARDED_BY(mutex_) = false;
  absl::Status status_ LINSERVE_GUARDED_BY(mutex_);
};

}  // namespace linserve
