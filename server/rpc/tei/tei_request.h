#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/calls/received.h"
#include "rpc/messages/wire.h"
#include "serving/request.h"
#include "tei/v1/tei.pb.h"

namespace linserve {

// These functions answer the requests of text-embeddings-inference (TEI), whatever their call.

// Holds what a request comes with.
struct TeiArrival {
  CallSide side;
  RequestContext context;
  std::string model{};      // "": the only model
  absl::Status admitted{};  // whether its message was taken
};

struct TeiResponse {
  WireMessage message;
  std::shared_ptr<Sending> sending;  // held until it is sent
};
// Called exactly once, on any thread. Must not throw.
using TeiDone = std::function<void(absl::StatusOr<TeiResponse>)>;

void BeginTei(ServiceContext& service, TeiArrival arrival, Received<tei::v1::EmbedRequest> request,
              const TeiDone& done);
void BeginTei(ServiceContext& service, TeiArrival arrival,
              Received<tei::v1::EmbedAllRequest> request, const TeiDone& done);
void BeginTei(ServiceContext& service, TeiArrival arrival,
              Received<tei::v1::EmbedSparseRequest> request, const TeiDone& done);
void BeginTei(ServiceContext& service, TeiArrival arrival,
              Received<tei::v1::PredictRequest> request, const TeiDone& done);
void BeginTei(ServiceContext& service, TeiArrival arrival,
              Received<tei::v1::PredictPairRequest> request, const TeiDone& done);
void BeginTei(ServiceContext& service, TeiArrival arrival, Received<tei::v1::RerankRequest> request,
              const TeiDone& done);
void BeginTei(ServiceContext& service, TeiArrival arrival, Received<tei::v1::EncodeRequest> request,
              const TeiDone& done);
void BeginTei(ServiceContext& service, TeiArrival arrival, Received<tei::v1::DecodeRequest> request,
              const TeiDone& done);

}  // namespace linserve
