#pragma once

#include <string>
#include <vector>

#include "serving/service_context.h"
#include "tei/v1/tei.grpc.pb.h"

namespace linserve {

// These serve the API of text-embeddings-inference (TEI), as EmbeddingService does the native one.
// Nothing here blocks. Each context must outlive its service.

using TeiUnary = grpc::ServerUnaryReactor;
using TeiStream = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

using TeiInfoBase = tei::v1::Info::WithRawCallbackMethod_Info<tei::v1::Info::Service>;

class TeiInfoService : public TeiInfoBase {
 public:
  explicit TeiInfoService(ServiceContext& context) : context_(context) {}

  TeiUnary* Info(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                 grpc::ByteBuffer* response) override;

 private:
  ServiceContext& context_;
};

using TeiEmbedBase =
    tei::v1::Embed::WithRawCallbackMethod_Embed<tei::v1::Embed::WithRawCallbackMethod_EmbedStream<
        tei::v1::Embed::WithRawCallbackMethod_EmbedSparse<
            tei::v1::Embed::WithRawCallbackMethod_EmbedSparseStream<
                tei::v1::Embed::WithRawCallbackMethod_EmbedAll<
                    tei::v1::Embed::WithRawCallbackMethod_EmbedAllStream<
                        tei::v1::Embed::Service>>>>>>;

class TeiEmbedService : public TeiEmbedBase {
 public:
  explicit TeiEmbedService(ServiceContext& context) : context_(context) {}

  TeiUnary* Embed(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                  grpc::ByteBuffer* response) override;
  TeiStream* EmbedStream(grpc::CallbackServerContext* context) override;
  TeiUnary* EmbedSparse(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                        grpc::ByteBuffer* response) override;
  TeiStream* EmbedSparseStream(grpc::CallbackServerContext* context) override;
  TeiUnary* EmbedAll(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                     grpc::ByteBuffer* response) override;
  TeiStream* EmbedAllStream(grpc::CallbackServerContext* context) override;

 private:
  ServiceContext& context_;
};

using TeiTokenizeBase = tei::v1::Tokenize::WithRawCallbackMethod_Tokenize<
    tei::v1::Tokenize::WithRawCallbackMethod_TokenizeStream<
        tei::v1::Tokenize::WithRawCallbackMethod_Decode<
            tei::v1::Tokenize::WithRawCallbackMethod_DecodeStream<tei::v1::Tokenize::Service>>>>;

class TeiTokenizeService : public TeiTokenizeBase {
 public:
  explicit TeiTokenizeService(ServiceContext& context) : context_(context) {}

  TeiUnary* Tokenize(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                     grpc::ByteBuffer* response) override;
  TeiStream* TokenizeStream(grpc::CallbackServerContext* context) override;
  TeiUnary* Decode(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                   grpc::ByteBuffer* response) override;
  TeiStream* DecodeStream(grpc::CallbackServerContext* context) override;

 private:
  ServiceContext& context_;
};

using TeiPredictBase = tei::v1::Predict::WithRawCallbackMethod_Predict<
    tei::v1::Predict::WithRawCallbackMethod_PredictPair<
        tei::v1::Predict::WithRawCallbackMethod_PredictStream<
            tei::v1::Predict::WithRawCallbackMethod_PredictPairStream<tei::v1::Predict::Service>>>>;

class TeiPredictService : public TeiPredictBase {
 public:
  explicit TeiPredictService(ServiceContext& context) : context_(context) {}

  TeiUnary* Predict(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                    grpc::ByteBuffer* response) override;
  TeiUnary* PredictPair(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                        grpc::ByteBuffer* response) override;
  TeiStream* PredictStream(grpc::CallbackServerContext* context) override;
  TeiStream* PredictPairStream(grpc::CallbackServerContext* context) override;

 private:
  ServiceContext& context_;
};

using TeiRerankBase = tei::v1::Rerank::WithRawCallbackMethod_Rerank<
    tei::v1::Rerank::WithRawCallbackMethod_RerankStream<tei::v1::Rerank::Service>>;

class TeiRerankService : public TeiRerankBase {
 public:
  explicit TeiRerankService(ServiceContext& context) : context_(context) {}

  TeiUnary* Rerank(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                   grpc::ByteBuffer* response) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* RerankStream(grpc::CallbackServerContext* context,
                                                          grpc::ByteBuffer* response) override;

 private:
  ServiceContext& context_;
};

// Holds all of TEI's services.
struct TeiServices {
  explicit TeiServices(ServiceContext& context)
      : info(context), embed(context), tokenize(context), predict(context), rerank(context) {}

  std::vector<grpc::Service*> All() { return {&info, &embed, &tokenize, &predict, &rerank}; }
  static std::vector<std::string> Names();

  TeiInfoService info;
  TeiEmbedService embed;
  TeiTokenizeService tokenize;
  TeiPredictService predict;
  TeiRerankService rerank;
};

}  // namespace linserve
