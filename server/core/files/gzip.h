#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

// This is zlib's own, so that its header stays in the .cc file.
struct z_stream_s;

namespace linserve {

// Returns the text packed. Throws std::bad_alloc without memory.
std::string Gzip(std::string_view text);

// Unpacks a body as its bytes come.
class Gunzip {
 public:
  // Throws std::bad_alloc without memory.
  Gunzip();

  // Hands on what these bytes unpack to; false if they are malformed, or `keep` wants no more.
  bool Take(std::string_view packed, const std::function<bool(std::string_view)>& keep);

  // Says whether the text has ended.
  bool ended() const { return ended_; }

 private:
  std::unique_ptr<z_stream_s, void (*)(z_stream_s*)> stream_;
  bool ended_ = false;
};

}  // namespace linserve
