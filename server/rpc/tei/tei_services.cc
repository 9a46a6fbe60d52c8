#include "rpc/tei/tei_services.h"

#include <memory>

#include "rpc/calls/started.h"
#include "rpc/calls/unary.h"
#include "rpc/tei/tei_call.h"
#include "rpc/tei/tei_info.h"

namespace linserve {
namespace {

namespace wire = tei::v1;
using Context = grpc::CallbackServerContext;

template <typename Request>
TeiUnary* Answered(ServiceContext& service, const char* rpc, Context* context,
                   const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return Started<TeiUnary>([&] {
    return UnaryCall::Start(std::make_shared<TeiCall<Request>>(service, context, rpc, response),
                            Taken(request));
  });
}

template <typename Request>
TeiStream* Streamed(ServiceContext& service, const char* rpc, Context* context) {
  return Started<TeiStream>([&] {
    return StreamCall::Start(std::make_shared<TeiStreamCall<Request>>(service, context, rpc));
  });
}

template <typename Reactor>
Reactor* Unimplemented(const char* why) {
  return new EndedCall<Reactor>(absl::UnimplementedError(why));
}

}  // namespace

std::string TeiModelOf(const grpc::ServerContextBase& context) {
  const auto found = context.client_metadata().find("linserve-model");
  if (found == context.client_metadata().end()) return "";
  return {found->second.data(), found->second.size()};
}

std::vector<std::string> TeiServices::Names() {
  return {wire::Info::service_full_name(), wire::Embed::service_full_name(),
          wire::Tokenize::service_full_name(), wire::Predict::service_full_name(),
          wire::Rerank::service_full_name()};
}

TeiUnary* TeiInfoService::Info(Context* context, const grpc::ByteBuffer* request,
                               grpc::ByteBuffer* response) {
  return AnswerCaller<wire::InfoRequest, wire::InfoResponse>(
      context, context_, "tei.Info", {request, response},
      [&](const Caller& caller, const auto& /*question*/, wire::InfoResponse& answer) {
        return Describe(context_, caller, TeiModelOf(*context), answer);
      });
}

TeiUnary* TeiEmbedService::Embed(Context* context, const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) {
  return Answered<wire::EmbedRequest>(context_, "tei.Embed", context, request, response);
}

TeiStream* TeiEmbedService::EmbedStream(Context* context) {
  return Streamed<wire::EmbedRequest>(context_, "tei.EmbedStream", context);
}

TeiUnary* TeiEmbedService::EmbedSparse(Context* context, const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) {
  return Answered<wire::EmbedSparseRequest>(context_, "tei.EmbedSparse", context, request,
                                            response);
}

TeiStream* TeiEmbedService::EmbedSparseStream(Context* context) {
  return Streamed<wire::EmbedSparseRequest>(context_, "tei.EmbedSparseStream", context);
}

TeiUnary* TeiEmbedService::EmbedAll(Context* context, const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) {
  return Answered<wire::EmbedAllRequest>(context_, "tei.EmbedAll", context, request, response);
}

TeiStream* TeiEmbedService::EmbedAllStream(Context* context) {
  return Streamed<wire::EmbedAllRequest>(context_, "tei.EmbedAllStream", context);
}

TeiUnary* TeiTokenizeService::Tokenize(Context* context, const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) {
  return Answered<wire::EncodeRequest>(context_, "tei.Tokenize", context, request, response);
}

TeiStream* TeiTokenizeService::TokenizeStream(Context* context) {
  return Streamed<wire::EncodeRequest>(context_, "tei.TokenizeStream", context);
}

TeiUnary* TeiTokenizeService::Decode(Context* context, const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) {
  return Answered<wire::DecodeRequest>(context_, "tei.Decode", context, request, response);
}

TeiStream* TeiTokenizeService::DecodeStream(Context* context) {
  return Streamed<wire::DecodeRequest>(context_, "tei.DecodeStream", context);
}

TeiUnary* TeiPredictService::Predict(Context* context, const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) {
  return Answered<wire::PredictRequest>(context_, "tei.Predict", context, request, response);
}

TeiUnary* TeiPredictService::PredictPair(Context* context, const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) {
  return Answered<wire::PredictPairRequest>(context_, "tei.PredictPair", context, request,
                                            response);
}

TeiStream* TeiPredictService::PredictStream(Context* context) {
  return Streamed<wire::PredictRequest>(context_, "tei.PredictStream", context);
}

TeiStream* TeiPredictService::PredictPairStream(Context* context) {
  return Streamed<wire::PredictPairRequest>(context_, "tei.PredictPairStream", context);
}

TeiUnary* TeiRerankService::Rerank(Context* context, const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) {
  return Answered<wire::RerankRequest>(context_, "tei.Rerank", context, request, response);
}

grpc::ServerReadReactor<grpc::ByteBuffer>* TeiRerankService::RerankStream(
    Context* /*context*/, grpc::ByteBuffer* /*response*/) {
  return Unimplemented<grpc::ServerReadReactor<grpc::ByteBuffer>>(
      "texts to rank are taken in one message: use Rerank");
}

}  // namespace linserve
