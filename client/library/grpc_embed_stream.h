#pragma once

#include <memory>

#include "client/library/embed_stream.h"
#include "linserve/v1/embedding.grpc.pb.h"

namespace linserve {

std::unique_ptr<EmbedStream> OpenGrpcStream(v1::EmbeddingService::Stub& stub);

}  // namespace linserve
