#pragma once

#include <string>

#include "inference/grpc_service.grpc.pb.h"
#include "rpc/service_context.h"

namespace linserve {

// Inferences go as raw bytes, so that their tensors need no copy.
using InferenceProtocol = inference::GRPCInferenceService;
using InferenceServiceBase = InferenceProtocol::WithRawCallbackMethod_ModelInfer<
    InferenceProtocol::WithRawCallbackMethod_ModelStreamInfer<
        InferenceProtocol::WithCallbackMethod_ServerLive<
            InferenceProtocol::WithCallbackMethod_ServerReady<
                InferenceProtocol::WithCallbackMethod_ModelReady<
                    InferenceProtocol::WithCallbackMethod_ServerMetadata<
                        InferenceProtocol::WithCallbackMethod_ModelMetadata<
                            InferenceProtocol::WithCallbackMethod_ModelConfig<
                                InferenceProtocol::WithCallbackMethod_ModelStatistics<
                                    InferenceProtocol::WithCallbackMethod_RepositoryIndex<
                                        InferenceProtocol::WithCallbackMethod_RepositoryModelLoad<
                                            InferenceProtocol::
                                                WithCallbackMethod_RepositoryModelUnload<
                                                    InferenceProtocol::Service>>>>>>>>>>>>;

// inference.GRPCInferenceService, the Open Inference Protocol: hop 1 and hop 7, as EmbeddingService
// is for the native one. Nothing here blocks.
class InferenceService : public InferenceServiceBase {
 public:
  // `context` must outlive the service.
  explicit InferenceService(ServiceContext& context) : context_(context) {}

  grpc::ServerUnaryReactor* ServerLive(grpc::CallbackServerContext* context,
                                       const inference::ServerLiveRequest* request,
                                       inference::ServerLiveResponse* response) override;
  grpc::ServerUnaryReactor* ServerReady(grpc::CallbackServerContext* context,
                                        const inference::ServerReadyRequest* request,
                                        inference::ServerReadyResponse* response) override;
  grpc::ServerUnaryReactor* ModelReady(grpc::CallbackServerContext* context,
                                       const inference::ModelReadyRequest* request,
                                       inference::ModelReadyResponse* response) override;
  grpc::ServerUnaryReactor* ServerMetadata(grpc::CallbackServerContext* context,
                                           const inference::ServerMetadataRequest* request,
                                           inference::ServerMetadataResponse* response) override;
  grpc::ServerUnaryReactor* ModelMetadata(grpc::CallbackServerContext* context,
                                          const inference::ModelMetadataRequest* request,
                                          inference::ModelMetadataResponse* response) override;
  grpc::ServerUnaryReactor* ModelConfig(grpc::CallbackServerContext* context,
                                        const inference::ModelConfigRequest* request,
                                        inference::ModelConfigResponse* response) override;
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ModelStreamInfer(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ModelStatistics(grpc::CallbackServerContext* context,
                                            const inference::ModelStatisticsRequest* request,
                                            inference::ModelStatisticsResponse* response) override;
  grpc::ServerUnaryReactor* RepositoryIndex(grpc::CallbackServerContext* context,
                                            const inference::RepositoryIndexRequest* request,
                                            inference::RepositoryIndexResponse* response) override;
  grpc::ServerUnaryReactor* RepositoryModelLoad(
      grpc::CallbackServerContext* context, const inference::RepositoryModelLoadRequest* request,
      inference::RepositoryModelLoadResponse* response) override;
  grpc::ServerUnaryReactor* RepositoryModelUnload(
      grpc::CallbackServerContext* context, const inference::RepositoryModelUnloadRequest* request,
      inference::RepositoryModelUnloadResponse* response) override;

 private:
  ServiceContext& context_;
};

}  // namespace linserve
