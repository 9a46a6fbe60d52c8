#include "telemetry/trace/resource.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "support/test_files.h"

namespace linserve {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(ResourceAttributes, StandWithCommasBetweenThem) {
  EXPECT_THAT(*ParseAttributes("k8s.pod.name=linserve-0, deployment.environment = try"),
              UnorderedElementsAre(Pair("k8s.pod.name", "linserve-0"),
                                   Pair("deployment.environment", "try")));
  EXPECT_THAT(*ParseAttributes("a=b%2Cc%3D%C3%A9,empty="),
              UnorderedElementsAre(Pair("a", "b,c=\u00e9"), Pair("empty", "")));
  EXPECT_THAT(*ParseAttributes(""), testing::IsEmpty());
}

TEST(ResourceAttributes, ThatAreNoneAreErrors) {
  for (const char* text : {"a", "=b", "a=b,c", "a=%2", "a=%", "a=%zz", "a=%+1"}) {
    EXPECT_THAT(ParseAttributes(text).status(), IsInvalid("expected key=value")) << text;
  }
}

TEST(Resource, IsTheServiceAndItsHost) {
  Resource resource = DescribeProcess("0.1.0", "", "");
  char host[256];
  ASSERT_EQ(gethostname(host, sizeof(host)), 0);
  EXPECT_EQ(resource["service.name"], "linserve");
  EXPECT_EQ(resource["service.version"], "0.1.0");
  EXPECT_EQ(resource["host.name"], host);
  EXPECT_EQ(resource["os.type"], "linux");
  const std::string id = resource["service.instance.id"];
  EXPECT_THAT(id,
              MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_NE(DescribeProcess("0.1.0", "", "")["service.instance.id"], id);
}

TEST(Resource, IsWhatTheVariablesSayMoreThanWhatIsKnown) {
  Resource resource = DescribeProcess("1", "service.name=a,service.instance.id=pod-7,more=yes", "");
  EXPECT_EQ(resource["service.name"], "a");
  EXPECT_EQ(resource["service.instance.id"], "pod-7");
  EXPECT_EQ(resource["more"], "yes");
  EXPECT_EQ(DescribeProcess("1", "service.name=a", "b")["service.name"], "b");
}

TEST(Resource, OverlooksAttributesThatCannotBeReadAndSaysSo) {
  testing::internal::CaptureStderr();
  Resource resource = DescribeProcess("1", "service.name=a,oops", "");
  EXPECT_EQ(resource["service.name"], "linserve");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("OTEL_RESOURCE_ATTRIBUTES is overlooked"));
}

}  // namespace
}  // namespace linserve
