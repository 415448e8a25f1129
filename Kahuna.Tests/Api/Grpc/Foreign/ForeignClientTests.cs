namespace Kahuna.Tests.Api.Grpc.Foreign;

/// <summary>
/// A gRPC implementation that is not ours drives the binding: all kinds of calls, deadlines, metadata, statuses, large
/// and compressed messages.
/// </summary>
public sealed class ForeignClientTests
{
    [Fact]
    public async Task Python_calls_the_binding()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        (int exitCode, string output) = await ForeignClient.RunPythonAsync(
            host.Address, TestCertificate.Instance.ExportCertificatePem(), protocolOnly: true);
        Assert.True(exitCode == 0, output);
    }
}
