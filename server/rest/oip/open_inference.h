#pragma once

#include "http/http_message.h"
#include "rest/calls/rest_call.h"

namespace linserve {

// These functions answer the REST form of the Open Inference Protocol. The first part of a path
// that the route captures is the model's name, and the second its version or "".
HttpReply ServerMetadata(const RestCall& call);
HttpReply StatisticsOfServer(const RestCall& call);
HttpReply ModelMetadata(const RestCall& call);
HttpReply ModelConfig(const RestCall& call);
HttpReply ModelReady(const RestCall& call);
HttpReply StatisticsOfModel(const RestCall& call);
HttpReply Infer(const RestCall& call);
HttpReply RepositoryIndex(const RestCall& call);

// These load or unload a model, and answer once that has ended.
HttpReply LoadModel(const RestCall& call);
HttpReply UnloadModel(const RestCall& call);

}  // namespace linserve
