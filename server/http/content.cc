#include "http/content.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "http/answers.h"
#include "http/framing/grammar.h"
#include "http/gzip.h"

namespace linserve {
namespace {

bool IsGzip(std::string_view coding) { return coding == "gzip" || coding == "x-gzip"; }

// Refuses a body that is a form of several parts, or packed in an unknown way. zlib tells the two
// known formats apart.
std::optional<HttpReply> RefuseForm(const HttpRequest& request, const std::string& coding) {
  if (LowerCase(request.Header("content-type")).starts_with("multipart/")) {
    return RefusalReply(415, "expected a body of one part, as JSON is");
  }
  if (coding.empty() || coding == "identity" || IsGzip(coding) || coding == "deflate") {
    return std::nullopt;
  }
  return RefusalReply(415, "expected no Content-Encoding but gzip or deflate");
}

HttpReply TooLong(size_t most) {
  return RefusalReply(413, "the body is longer than " + std::to_string(most) + " bytes");
}

// Returns whether a list of codings has gzip, with another weight than 0.
bool AcceptsGzip(std::string_view accepted) {
  const std::vector<std::string> codings = ElementsOf(accepted);
  return std::any_of(codings.begin(), codings.end(), [](std::string_view coding) {
    const std::string_view name = coding.substr(0, coding.find(';'));
    const std::string_view weight = coding.substr(name.size());
    const bool never =
        !weight.empty() && weight.find_first_of("123456789") == std::string_view::npos;
    return IsGzip(Trimmed(name)) && !never;
  });
}

}  // namespace

std::optional<HttpReply> ReadContent(const HttpHead& head, RequestStream& stream, size_t most,
                                     const HttpGate& gate, HttpRequest& request) {
  std::optional<HttpReply> refusal = gate ? gate(0) : std::nullopt;
  const std::string coding = LowerCase(request.Header("content-encoding"));
  if (!refusal) refusal = RefuseForm(request, coding);
  if (!refusal && head.length > most) refusal = TooLong(most);
  if (refusal) return refusal;
  const auto keep = [&](std::string_view piece) {
    if (piece.size() > most - request.body.size()) refusal = TooLong(most);
    if (!refusal && gate) refusal = gate(piece.size());
    if (!refusal) request.body.append(piece);
    return !refusal;
  };
  std::optional<Gunzip> packed;
  if (!coding.empty() && coding != "identity") packed.emplace();
  bool whole = true;
  for (auto piece = stream.ReadBody(); whole && !piece.empty(); piece = stream.ReadBody()) {
    whole = packed ? packed->Take(piece, keep) : keep(piece);
    if (refusal) return refusal;
  }
  if (stream.fault()) return RefusalReply(*stream.fault());
  if (whole && (!packed || packed->ended())) return std::nullopt;
  return RefusalReply(400, "the body is not packed as its Content-Encoding says");
}

void PackContent(const HttpRequest& request, HttpReply& reply) {
  const std::string& type = reply.content_type;
  const bool text = type.starts_with("text/") || type == "application/json";
  // zlib takes no more at once.
  const bool some = !reply.body.empty() && reply.body.size() <= std::numeric_limits<int>::max();
  if (!text || !some || !AcceptsGzip(request.Header("accept-encoding"))) return;
  reply.body = Gzip(reply.body);
  reply.headers.emplace_back("Content-Encoding", "gzip");
}

}  // namespace linserve
