#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/sequence/item.h"
#include "inference/grpc_service.pb.h"
#include "rpc/calls/received.h"
#include "rpc/oip/infer_answer.h"
#include "rpc/oip/inference_parameters.h"
#include "serving/requests/whole_request.h"

namespace linserve {

// Represents one ModelInferRequest: a whole batch, which is cut into sequences as `linserve run`
// cuts a file. The engine computes them in whatever company, and the results are joined again.
class InferRequestState : public WholeRequestState {
 public:
  // Called exactly once, on any thread. Must not throw.
  using Done = std::function<void(absl::StatusOr<InferAnswer>)>;

  // `chunks` says that the answer can be sent in chunks.
  InferRequestState(CallSide call, RequestContext context, bool chunks, Done done)
      : WholeRequestState(std::move(call), std::move(context)),
        chunks_(chunks),
        done_(std::move(done)) {}

  // Takes the message over, to be answered.
  void Submit(ServiceContext& service, Received<inference::ModelInferRequest> request);

 private:
  absl::Status ReadOptions(const RpcLimits& limits, const ServedModel& model) override;
  absl::Status ReadItems(Tokenization& work) override;
  absl::Status ReadTexts(Tokenization& work);
  absl::Status ReadTensors(Tokenization& work);
  absl::Status CheckSequences(const ServedModel& model, int64_t sequences);
  absl::Status CheckChunkRows(int64_t sequences) const;
  absl::Status AddSession(const ModelInfo& info, std::vector<absl::StatusOr<Item>>& items);
  absl::Status Answer(std::vector<ItemResult> results, const Timing& last) override;
  void AnswerRefusal(const absl::Status& status) override { done_(status); }
  absl::Status Join(std::vector<ItemResult>& results);
  absl::Status CheckSize(int64_t bytes) const;

  const bool chunks_;
  const Done done_;

  std::shared_ptr<const inference::ModelInferRequest> message_;  // while it is read

  InferAnswer answer_;                    // all but its tensors
  const Signature* signature_ = nullptr;  // the engine's, which outlives what it delivers
  InferOptions options_;
  std::map<char, int64_t> padded_;
  int64_t max_sequences_ = 0;
  int64_t max_bytes_ = 0;  // bytes of an answer
};

}  // namespace linserve
