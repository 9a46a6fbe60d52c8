#pragma once

#include <string>
#include <vector>

#include "http/http_message.h"

namespace linserve {

// Says whether the request is of no page, of one of this server, or of one of the origins. A
// browser sends some requests of any page without having asked, and only hides what they are
// answered.
bool MayCall(const std::vector<std::string>& origins, const HttpRequest& request);

// Lets a browser show the reply to a page of one of the origins ("*": of any), as the Fetch
// standard has it, and call the path of a reply to OPTIONS.
void AllowOrigin(const std::vector<std::string>& origins, const HttpRequest& request,
                 HttpReply& reply);

}  // namespace linserve
