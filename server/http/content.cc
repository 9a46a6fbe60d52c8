#include "http/content.h"

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/files/gzip.h"
#include "core/threads/guarded.h"
#include "http/answers.h"
#include "http/framing/grammar.h"

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
  HttpReply reply = RefusalReply(415, "expected no Content-Encoding but gzip or deflate");
  reply.headers.emplace_back("Accept-Encoding", "gzip, deflate");
  return reply;
}

HttpReply TooLong(size_t most) {
  return RefusalReply(413, "the body is longer than " + std::to_string(most) + " bytes");
}

// Returns whether a caller wants gzip, and at least as much as no coding.
bool WantsGzip(std::string_view accepted) {
  const std::vector<std::string> wanted = ElementsOf(accepted);
  auto gzip = WeightOf(wanted, "gzip");
  if (!gzip) gzip = WeightOf(wanted, "x-gzip");
  if (!gzip) gzip = WeightOf(wanted, "*");
  return gzip.value_or(0) > 0 && *gzip >= WeightOf(wanted, "identity").value_or(0);
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
  constexpr size_t kLeast = 8 << 10;  // less is not worth the work
  // zlib takes no more at once.
  if (!reply.packable || reply.body.size() < kLeast ||
      reply.body.size() > std::numeric_limits<int>::max()) {
    return;
  }
  reply.headers.emplace_back("Vary", "Accept-Encoding");
  if (!WantsGzip(request.Header("accept-encoding"))) return;
  // Where there is no memory for that, the reply goes as it is.
  auto packed =
      Guarded("packing", [&]() -> absl::StatusOr<std::string> { return Gzip(reply.body); });
  if (!packed.ok()) return;
  reply.headers.emplace_back("Content-Encoding", "gzip");
  reply.body = *std::move(packed);
}

}  // namespace linserve
