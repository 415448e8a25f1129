using System.Collections.Concurrent;
using System.Net;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Benchmark.Targets.Etcd.Wire;
using Kahuna.Server.Api.Calls;
using Kahuna.Tests.Api.Grpc;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Benchmark;

/// <summary>
/// A server with as much of etcd's v3 API as the tool calls, over a dictionary and HTTP/2 without TLS. Owned by a test.
/// </summary>
internal sealed class FakeEtcdServer : IAsyncDisposable
{
    private readonly ConcurrentDictionary<ByteString, ByteString> _values = new();
    private readonly WebApplication _app;
    private int _connections;

    private FakeEtcdServer(int port)
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.Logging.ClearProviders();
        builder.WebHost.ConfigureKestrel(kestrel => kestrel.Listen(IPAddress.Loopback, port, listen =>
        {
            listen.Protocols = HttpProtocols.Http2;
            listen.Use(next => connection =>
            {
                Interlocked.Increment(ref _connections);
                return next(connection);
            });
        }));
        CallLimits limits = new();
        TestServices services = new();
        services.AddService(
            EtcdReflection.Descriptor.Services.Single(service => service.Name == "KV"),
            service => service
            .Unary<PutRequest, PutResponse>("Put", (request, _) => PutAsync(request))
            .Unary<TxnRequest, TxnResponse>("Txn", (request, _) => CommitAsync(request))
            .Unary<RangeRequest, RangeResponse>("Range", (request, _) =>
                Task.FromResult(new RangeResponse { Count = _values.ContainsKey(request.Key) ? 1 : 0 })));
        services.AddService(
            EtcdReflection.Descriptor.Services.Single(service => service.Name == "Maintenance"),
            service => service
            .Unary<StatusRequest, StatusResponse>(
                "Status", (_, _) => Task.FromResult(new StatusResponse { Version = "3.9.9" })));
        services.AddTo(builder.Services, limits);
        _app = builder.Build();
        services.MapTo(_app, limits, NullLogger.Instance);
    }

    public string Endpoint =>
        _app.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses.Single();

    public int Connections => Volatile.Read(ref _connections);

    /// <summary>Hangs every put.</summary>
    public bool IsStuck { get; set; }

    /// <summary>Refuses every put.</summary>
    public bool IsFull { get; set; }

    public IReadOnlyDictionary<ByteString, ByteString> Values => _values;

    public static async Task<FakeEtcdServer> StartAsync(int port = 0)
    {
        FakeEtcdServer server = new(port);
        await server._app.StartAsync();
        return server;
    }

    public async ValueTask DisposeAsync() => await _app.DisposeAsync();

    private async Task<TxnResponse> CommitAsync(TxnRequest request)
    {
        TxnResponse reply = new() { Succeeded = true };
        foreach (RequestOp operation in request.Success)
        {
            reply.Responses.Add(operation.RequestCase == RequestOp.RequestOneofCase.RequestPut
                ? new ResponseOp { ResponsePut = await PutAsync(operation.RequestPut) }
                : new ResponseOp { ResponseRange = new RangeResponse() });
        }

        return reply;
    }

    private async Task<PutResponse> PutAsync(PutRequest request)
    {
        if (IsStuck)
        {
            await Task.Delay(TimeSpan.FromMinutes(1));
        }

        if (IsFull)
        {
            throw new RpcException(
                new Status(StatusCode.ResourceExhausted, "etcdserver: mvcc: database space exceeded"));
        }

        _values[request.Key] = request.Value;
        return new PutResponse();
    }
}
