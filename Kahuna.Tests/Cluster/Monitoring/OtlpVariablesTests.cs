using System.Net;
using Kahuna.Client;
using Kahuna.Tests.Client;
using Kahuna.Tests.Hosting.Measurements;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster.Monitoring;

/// <summary>A server process that sends over HTTP as the variables of OpenTelemetry say.</summary>
[Collection(ClusterCollection.Name)]
public sealed class OtlpVariablesTests(ITestOutputHelper output)
{
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Address_protocol_headers_and_pauses_are_those_of_the_variables(bool isAddressAnOption)
    {
        await using OtlpHttpReceiver receiver = await OtlpHttpReceiver.StartAsync();
        receiver.Answer = static http =>
        {
            http.Response.StatusCode = (int)HttpStatusCode.ServiceUnavailable;
            return Task.CompletedTask;
        };
        string address = new Uri(receiver.Address, "/otlp").ToString();
        string[] given = isAddressAnOption ? ["--otlp-endpoint", address] : [];
        await using ProcessCluster cluster = new(output, 1, ["--trace-ratio", "1", .. given]);
        NodeProcess node = cluster.Nodes[0];
        node.Variables["OTEL_EXPORTER_OTLP_ENDPOINT"] = isAddressAnOption ? "http://nobody.invalid:4317" : address;
        node.Variables["OTEL_EXPORTER_OTLP_PROTOCOL"] = "http/protobuf";
        node.Variables["OTEL_EXPORTER_OTLP_HEADERS"] = "api-key=secret";
        node.Variables["OTEL_METRIC_EXPORT_INTERVAL"] = "100";
        node.Variables["OTEL_BSP_SCHEDULE_DELAY"] = "100";
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(LastNet.Call);
            await client.KeyValues.SetAsync("a/b", "1");

            // Refused, and told once.
            await UntilSentAsync(receiver, "v1/metrics", "kahuna.node.ready", 5);
            await UntilSentAsync(receiver, "v1/traces", "db.operation.name", 1);
            Assert.Single(node.Log().Split('\n'), static line =>
                line.Contains("could not be sent", StringComparison.Ordinal));

            // Taken from now on.
            receiver.Answer = null;
            await client.KeyValues.SetAsync("a/b", "2");
            await UntilSentAsync(receiver, "v1/metrics", "kahuna.node.ready", receiver.Requests.Length + 5);
            Assert.All(receiver.Requests, static request =>
                Assert.Equal(("application/x-protobuf", "secret"), (request.Format, request.Key)));
        });
    }

    private static Task UntilSentAsync(OtlpHttpReceiver receiver, string path, string part, int times) =>
        Wait.UntilAsync(async () =>
        {
            await Task.Delay(20);
            return receiver.Requests.Count(request => request.Line == "POST /otlp/" + path
                && request.Body.Contains(part, StringComparison.Ordinal)) >= times;
        });
}
