#pragma once

#include <string>

#include "inference/grpc_service.grpc.pb.h"
#include "serving/service_context.h"

namespace linserve {

// All goes as raw bytes: a message is decoded when its caller is admitted and its size is known,
// and tensors need no copy.
using InferenceProtocol = inference::GRPCInferenceService;
using InferenceServiceBase = InferenceProtocol::WithRawCallbackMethod_ModelInfer<
    InferenceProtocol::WithRawCallbackMethod_ModelStreamInfer<
        InferenceProtocol::WithRawCallbackMethod_ServerLive<
            InferenceProtocol::WithRawCallbackMethod_ServerReady<
                InferenceProtocol::WithRawCallbackMethod_ModelReady<
                    InferenceProtocol::WithRawCallbackMethod_ServerMetadata<
                        InferenceProtocol::WithRawCallbackMethod_ModelMetadata<
                            InferenceProtocol::WithRawCallbackMethod_ModelConfig<
                                InferenceProtocol::WithRawCallbackMethod_ModelStatistics<
                                    InferenceProtocol::WithRawCallbackMethod_RepositoryIndex<
                                        InferenceProtocol::
                                            WithRawCallbackMethod_RepositoryModelLoad<
                                                InferenceProtocol::
                                                    WithRawCallbackMethod_RepositoryModelUnload<
                                                        InferenceProtocol::Service>>>>>>>>>>>>;

// Serves inference.GRPCInferenceService, the Open Inference Protocol, as EmbeddingService does the
// native one. Nothing here blocks.
class InferenceService : public InferenceServiceBase {
 public:
  // `context` must outlive the service.
  explicit InferenceService(ServiceContext& context) : context_(context) {}

  grpc::ServerUnaryReactor* ServerLive(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ServerReady(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ModelReady(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ServerMetadata(grpc::CallbackServerContext* context,
                                           const grpc::ByteBuffer* request,
                                           grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ModelMetadata(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ModelConfig(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ModelStreamInfer(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ModelStatistics(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* RepositoryIndex(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* RepositoryModelLoad(grpc::CallbackServerContext* context,
                                                const grpc::ByteBuffer* request,
                                                grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* RepositoryModelUnload(grpc::CallbackServerContext* context,
                                                  const grpc::ByteBuffer* request,
                                                  grpc::ByteBuffer* response) override;

 private:
  ServiceContext& context_;
};

}  // namespace linserve
