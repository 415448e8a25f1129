using System.Net;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Tests.Hosting;

/// <summary>A name becomes the end points that this machine has.</summary>
public sealed class ListenEndPointsTests
{
    [Theory]
    [InlineData(true, true, "127.0.0.1:9001,[::1]:9001")]
    [InlineData(true, false, "127.0.0.1:9001")]
    [InlineData(false, true, "[::1]:9001")]
    [InlineData(false, false, "127.0.0.1:9001,[::1]:9001")]
    public void Localhost_is_the_loopback_addresses_that_there_are(bool first, bool second, string expected) =>
        Assert.Equal(expected, string.Join(',', ListenEndPoints.Of(new Uri("https://localhost:9001"), address => address.Equals(IPAddress.Loopback) ? first : second)));

    [Fact]
    public void Whether_an_address_is_here_is_found_out_by_binding_it()
    {
        Assert.True(ListenEndPoints.IsHere(IPAddress.Loopback));

        // RFC 5737: no machine has it.
        Assert.False(ListenEndPoints.IsHere(IPAddress.Parse("192.0.2.1")));
    }
}
