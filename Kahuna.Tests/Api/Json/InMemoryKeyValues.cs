using System.Collections.Concurrent;
using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using Microsoft.AspNetCore.Builder;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace Kahuna.Tests.Api.Json;

/// <summary>
/// The key/value service over a dictionary, bound as the product binds its own, so that JSON over HTTP reaches it. Any
/// thread.
/// </summary>
internal sealed class InMemoryKeyValues : KeyValues.KeyValuesBase
{
    private readonly ConcurrentDictionary<string, Value> _values = new();

    /// <summary>What a read waits for before it answers; null: nothing.</summary>
    public Func<ServerCallContext, Task>? BeforeGet { get; init; }

    /// <summary>Starts a host that serves this alone.</summary>
    public Task<GrpcTestHost> StartAsync(CallLimits? limits = null, ILogger? log = null) => GrpcTestHost.StartAsync(
        static _ => { },
        limits,
        log: log,
        configure: services => services.AddSingleton(this),
        map: static app => app.MapGrpcService<InMemoryKeyValues>());

    public override Task<SetKeyValueResponse> SetKeyValue(SetKeyValueRequest request, ServerCallContext context)
    {
        _values[request.Key] = request.Value;
        return Task.FromResult(new SetKeyValueResponse { Set = true });
    }

    public override async Task<GetKeyValueResponse> GetKeyValue(GetKeyValueRequest request, ServerCallContext context)
    {
        if (BeforeGet is { } before)
        {
            await before(context);
        }

        return _values.TryGetValue(request.Key, out Value? value)
            ? new GetKeyValueResponse { Found = true, Value = value }
            : new GetKeyValueResponse();
    }
}
