#include "core/files/gzip.h"

#include <zlib.h>

#include <array>
#include <new>

namespace linserve {
namespace {

constexpr int kWindow = 15;  // bits, the most
constexpr int kAsGzip = kWindow + 16;
constexpr int kGzipOrZlib = kWindow + 32;  // "deflate" means zlib's format
constexpr int kMemory = 8;
// Says that little time is spent: levels that pack more take several times as long.
constexpr int kLevel = 1;

// zlib reads what its type calls its own.
Bytef* Input(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

}  // namespace

std::string Gzip(std::string_view text) {
  z_stream stream{};
  if (::deflateInit2(&stream, kLevel, Z_DEFLATED, kAsGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ended(&stream, ::deflateEnd);
  stream.next_in = Input(text);
  stream.avail_in = static_cast<uInt>(text.size());
  // Packed piece by piece, since the text takes memory meanwhile, too.
  std::string packed;
  std::array<char, 64 << 10> piece{};
  for (int result = Z_OK; result != Z_STREAM_END;) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    result = ::deflate(&stream, Z_FINISH);
    packed.append(piece.data(), piece.size() - stream.avail_out);
  }
  return packed;
}

Gunzip::Gunzip()
    : stream_(new z_stream{}, [](z_stream* stream) {
        ::inflateEnd(stream);
        delete stream;
      }) {
  if (::inflateInit2(stream_.get(), kGzipOrZlib) != Z_OK) throw std::bad_alloc();
}

bool Gunzip::Take(std::string_view packed, const std::function<bool(std::string_view)>& keep) {
  std::array<char, 16 << 10> unpacked{};
  stream_->next_in = Input(packed);
  stream_->avail_in = static_cast<uInt>(packed.size());
  // Without room for all that it knows, it may have taken the whole piece and have more to give.
  do {
    if (ended_) {  // a member, of which there may be several (RFC 1952)
      if (stream_->avail_in == 0) return true;
      ::inflateReset(stream_.get());
      ended_ = false;
    }
    stream_->next_out = reinterpret_cast<Bytef*>(unpacked.data());
    stream_->avail_out = static_cast<uInt>(unpacked.size());
    const int result = ::inflate(stream_.get(), Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    ended_ = result == Z_STREAM_END;
    if (!ended_ && result != Z_OK && result != Z_BUF_ERROR) return false;
    const std::string_view given(unpacked.data(), unpacked.size() - stream_->avail_out);
    if (!given.empty() && !keep(given)) return false;
  } while (stream_->avail_in > 0 || stream_->avail_out == 0);
  return true;
}

}  // namespace linserve
