#include "http/listener.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "core/files/descriptor.h"
#include "http/raw_connection.h"

namespace linserve {
namespace {

// Linux tells that there is room for more of an answer only once a third of its buffer is free. It
// lets the buffer grow to megabytes, so that a slow reader would seem to read nothing for long.
TEST(Listener, LetsTheKernelKeepOnlyALittleOfAnAnswerThatIsNotSent) {
  auto listener = Listener::Open("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok()) << listener.status();
  const RawConnection caller((*listener)->port());
  const Descriptor accepted((*listener)->Accept());
  int unsent = 0;
  socklen_t size = sizeof(unsent);
  ASSERT_EQ(::getsockopt(accepted.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, &size), 0);
  EXPECT_EQ(unsent, 128 << 10);
}

}  // namespace
}  // namespace linserve
