using System.Diagnostics;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Client;
using Kahuna.Client.Administration;
using Kahuna.Client.Transactions;
using Kahuna.Client.Watches;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Client;
using Kahuna.Wire.Protos;
using Level = Kahuna.Server.Api.Protos.Durability;

namespace Kahuna.Tests.Access;

/// <summary>Somebody at a node: each action ends with a status and a sentence. Owned by one test.</summary>
internal abstract class AccessVisitor : IAsyncDisposable
{
    /// <summary>Sets a key.</summary>
    public abstract Task<VisitAnswer> SetAsync(string key);

    /// <summary>Reads a key.</summary>
    public abstract Task<VisitAnswer> GetAsync(string key);

    /// <summary>Runs a script.</summary>
    public abstract Task<VisitAnswer> RunScriptAsync(string script);

    /// <summary>Sets keys in one transaction.</summary>
    /// <param name="keys">The keys.</param>
    /// <param name="before">Happens before it is committed.</param>
    public abstract Task<VisitAnswer> SetAllAsync(string[] keys, Func<Task>? before = null);

    /// <summary>Watches a key until the first change, or why it does not.</summary>
    /// <param name="key">The key.</param>
    /// <param name="begun">Called again and again until there is a change.</param>
    public abstract Task<VisitAnswer> WatchAsync(string key, Func<Task>? begun = null);

    /// <summary>Creates a user.</summary>
    public abstract Task<VisitAnswer> CreateUserAsync(string name, string role);

    /// <summary>Deletes a user.</summary>
    public abstract Task<VisitAnswer> DeleteUserAsync(string name);

    public abstract ValueTask DisposeAsync();

    /// <summary>Calls again while the watch runs, so that there is something to see.</summary>
    protected static async Task RepeatAsync(Task watch, Func<Task>? begun)
    {
        while (begun is not null && !watch.IsCompleted)
        {
            await begun();
            await Task.WhenAny(watch, Task.Delay(20));
        }
    }
}

/// <summary>How an action ended.</summary>
/// <param name="Code">The status.</param>
/// <param name="Sentence">What the caller is told.</param>
internal sealed record VisitAnswer(StatusCode Code, string Sentence)
{
    public static VisitAnswer Good { get; } = new(StatusCode.OK, "");

    /// <summary>There is no such key.</summary>
    public static VisitAnswer Missing { get; } = new(StatusCode.OK, "missing");
}

/// <summary>A visitor with the SDK.</summary>
internal sealed class SdkVisitor(KahunaClient client) : AccessVisitor
{
    public override Task<VisitAnswer> SetAsync(string key) =>
        TryAsync(() => client.KeyValues.SetAsync(key, "v").AsTask());

    public override async Task<VisitAnswer> GetAsync(string key)
    {
        bool isFound = false;
        VisitAnswer answer = await TryAsync(
            async () => isFound = (await client.KeyValues.GetAsync(key)).Found);
        return answer == VisitAnswer.Good && !isFound ? VisitAnswer.Missing : answer;
    }

    public override Task<VisitAnswer> RunScriptAsync(string script) =>
        TryAsync(() => client.Scripts.RunAsync(script));

    public override Task<VisitAnswer> SetAllAsync(string[] keys, Func<Task>? before = null) => TryAsync(async () =>
    {
        await using Transaction transaction = await client.Transactions.BeginAsync();
        foreach (string key in keys)
        {
            await transaction.SetAsync(key, "v");
        }

        await (before?.Invoke() ?? Task.CompletedTask);
        await transaction.CommitAsync();
    });

    public override Task<VisitAnswer> WatchAsync(string key, Func<Task>? begun = null) => TryAsync(async () =>
    {
        Task watch = FirstAsync(key);
        await RepeatAsync(watch, begun);
        await watch;
    });

    public override Task<VisitAnswer> CreateUserAsync(string name, string role) => TryAsync(
        () => client.Admin.CreateUserAsync(new KahunaUser { Name = name, Roles = [role] }).AsTask());

    public override Task<VisitAnswer> DeleteUserAsync(string name) =>
        TryAsync(() => client.Admin.DeleteUserAsync(name).AsTask());

    public override ValueTask DisposeAsync() => client.DisposeAsync();

    private async Task FirstAsync(string key)
    {
        await foreach (WatchEvent _ in client.KeyValues.WatchAsync(key, new WatchOptions { Scope = WatchScope.Key }))
        {
            return;
        }
    }

    private static async Task<VisitAnswer> TryAsync(Func<Task> action)
    {
        try
        {
            await action().WaitAsync(Wait.Longest);
            return VisitAnswer.Good;
        }
        catch (KahunaException failure)
        {
            return new VisitAnswer(
                Enum.TryParse(failure.Code.ToString(), out StatusCode code) ? code : StatusCode.Unknown,
                failure.Message);
        }
    }
}

/// <summary>A visitor with the official gRPC client and the published messages.</summary>
internal sealed class ForeignVisitor(GrpcChannel channel, string? authorization) : AccessVisitor
{
    public override Task<VisitAnswer> SetAsync(string key) => TryAsync(
        "KeyValues/SetKeyValue", Set(key), SetKeyValueResponse.Parser);

    public override Task<VisitAnswer> GetAsync(string key) => TryAsync(
        "KeyValues/GetKeyValue",
        new GetKeyValueRequest { Key = key, Durability = Level.Persistent },
        GetKeyValueResponse.Parser,
        static found => found.Found ? VisitAnswer.Good : VisitAnswer.Missing);

    public override Task<VisitAnswer> RunScriptAsync(string script) => TryAsync(
        "Scripts/RunScript", new RunScriptRequest { Script = script }, RunScriptResponse.Parser);

    public override async Task<VisitAnswer> SetAllAsync(string[] keys, Func<Task>? before = null)
    {
        await (before?.Invoke() ?? Task.CompletedTask);
        return await TryAsync(
            "Transactions/ExecuteTransaction",
            new ExecuteTransactionRequest
            {
                Durability = Level.Persistent,
                Then = { keys.Select(static key => new TransactionOperation { Set = Set(key) }) },
            },
            ExecuteTransactionResponse.Parser);
    }

    public override async Task<VisitAnswer> WatchAsync(string key, Func<Task>? begun = null)
    {
        try
        {
            Task watch = FirstAsync(key);
            await RepeatAsync(watch, begun);
            await watch;
            return VisitAnswer.Good;
        }
        catch (RpcException failure)
        {
            return new VisitAnswer(failure.StatusCode, failure.Status.Detail);
        }
    }

    public override Task<VisitAnswer> CreateUserAsync(string name, string role) => TryAsync(
        "Admin/CreateUser",
        new CreateUserRequest { User = new User { Name = name, Roles = { role } } },
        User.Parser);

    public override Task<VisitAnswer> DeleteUserAsync(string name) => TryAsync(
        "Admin/DeleteUser", new DeleteUserRequest { Name = name }, DeleteUserResponse.Parser);

    public override ValueTask DisposeAsync()
    {
        channel.Dispose();
        return default;
    }

    private static SetKeyValueRequest Set(string key) => new()
    {
        Key = key,
        Durability = Level.Persistent,
        Value = new Value { Data = Google.Protobuf.ByteString.CopyFromUtf8("v") },
    };

    private async Task FirstAsync(string key)
    {
        WatchKeyValuesRequest request = new() { Key = key, Durability = Level.Persistent };
        await foreach (WatchKeyValuesResponse told in channel.ServerStreamingAsync(
            "/kahuna.v1.KeyValues/WatchKeyValues", request, WatchKeyValuesResponse.Parser, Options()))
        {
            if (told.Events.Count > 0)
            {
                return;
            }
        }
    }

    private async Task<VisitAnswer> TryAsync<TReply>(
        string method,
        Google.Protobuf.IMessage request,
        Google.Protobuf.MessageParser<TReply> parser,
        Func<TReply, VisitAnswer>? answer = null)
        where TReply : class, Google.Protobuf.IMessage<TReply>
    {
        long began = Stopwatch.GetTimestamp();
        while (true)
        {
            try
            {
                TReply reply = await channel.UnaryAsync("/kahuna.v1." + method, request, parser, Options());
                return answer?.Invoke(reply) ?? VisitAnswer.Good;
            }
            catch (RpcException failure) when (
                failure.StatusCode == StatusCode.Unavailable && Stopwatch.GetElapsedTime(began) < Wait.Longest)
            {
                // On a busy machine a node may not know for a moment what users may do.
                await Task.Delay(50);
            }
            catch (RpcException failure)
            {
                return new VisitAnswer(failure.StatusCode, failure.Status.Detail);
            }
        }
    }

    private CallOptions Options() => TestCalls.Within(
        Wait.Longest, authorization is null ? [] : new Metadata { { "authorization", authorization } });
}
