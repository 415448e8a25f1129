using Google.Protobuf;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using Protos = Kahuna.Server.Api.Protos;

namespace Kahuna.Tests.Api;

/// <summary>The unary methods of locks over one channel.</summary>
internal sealed class UnaryLocks(GrpcChannel channel)
{
    private static readonly TimeSpan s_patience = LastNet.Span;

    public static AcquireLockRequest Request(
        string resource, Protos.Durability durability, string owner, long leaseMs = 600_000, long? waitMs = null)
    {
        AcquireLockRequest request = new()
        {
            Resource = resource,
            Durability = durability,
            Owner = owner,
            LeaseMs = leaseMs,
            Mode = Protos.LockMode.Exclusive,
        };
        if (waitMs is { } wait)
        {
            request.WaitMs = wait;
        }

        return request;
    }

    /// <summary>The same call again and again.</summary>
    public static Metadata Numbered(ulong session, int sequence) => new()
    {
        { "x-kahuna-session", session.ToString(System.Globalization.CultureInfo.InvariantCulture) },
        { "x-kahuna-sequence", sequence.ToString(System.Globalization.CultureInfo.InvariantCulture) },
    };

    public Task<AcquireLockResponse> AcquireAsync(
        AcquireLockRequest request,
        Metadata? headers = null,
        TimeSpan? deadline = null,
        CancellationToken ct = default) =>
        CallAsync(
            "AcquireLock", request, AcquireLockResponse.Parser, TestCalls.Within(deadline ?? s_patience, headers, ct));

    public Task<ExtendLockResponse> ExtendAsync(ExtendLockRequest request, Metadata? headers = null) =>
        CallAsync("ExtendLock", request, ExtendLockResponse.Parser, TestCalls.Within(s_patience, headers));

    public Task<ReleaseLockResponse> ReleaseAsync(
        string resource, Protos.Durability durability, string owner, long token, Metadata? headers = null) =>
        CallAsync(
        "ReleaseLock",
        new ReleaseLockRequest { Resource = resource, Durability = durability, Owner = owner, Token = token },
        ReleaseLockResponse.Parser,
        TestCalls.Within(s_patience, headers));

    public async Task<LockDescription?> GetAsync(string resource, Protos.Durability durability) =>
        (await CallAsync(
            "GetLock",
            new GetLockRequest { Resource = resource, Durability = durability },
            GetLockResponse.Parser)).Lock;

    public Task<ListLocksResponse> ListAsync(ListLocksRequest request) =>
        CallAsync("ListLocks", request, ListLocksResponse.Parser);

    public Task<ObserveLockResponse> ObserveAsync(ObserveLockRequest request) =>
        CallAsync("ObserveLock", request, ObserveLockResponse.Parser);

    /// <summary>Waits until so many wait for a lock.</summary>
    public async Task UntilWaitingAsync(string resource, Protos.Durability durability, int waiting)
    {
        long deadline = Environment.TickCount64 + (long)LastNet.Span.TotalMilliseconds;
        while ((await GetAsync(resource, durability))?.Waiting != waiting)
        {
            Assert.True(Environment.TickCount64 < deadline, $"never {waiting} waited for {resource}");
            await Task.Delay(20);
        }
    }

    private Task<TReply> CallAsync<TRequest, TReply>(
        string method, TRequest request, MessageParser<TReply> parser, CallOptions? options = null)
        where TRequest : IMessage<TRequest>
        where TReply : class, IMessage<TReply> =>
        channel.UnaryAsync($"/kahuna.v1.Locks/{method}", request, parser, options ?? TestCalls.Within(s_patience));
}
