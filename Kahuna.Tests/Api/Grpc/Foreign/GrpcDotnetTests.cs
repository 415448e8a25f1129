using System.Buffers.Binary;
using System.Diagnostics;
using System.Text;
using Google.Protobuf;
using Google.Protobuf.Reflection;
using Grpc.Core;
using Grpc.Health.V1;
using Grpc.Reflection.V1;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Hosting;
using Kahuna.Wire.Protos;
using ServingStatus = Grpc.Health.V1.HealthCheckResponse.Types.ServingStatus;

namespace Kahuna.Tests.Api.Grpc.Foreign;

/// <summary>
/// grpc-dotnet against the shipped server, through a node that leads and one that does not: every method of its
/// services, health and reflection.
/// </summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class GrpcDotnetTests(ThreeNodes nodes)
{
    private const ushort WireVersion = 3;

    private static readonly ServiceDescriptor s_keys = KeyValuesReflection.Descriptor.Services[0];
    private static readonly ServiceDescriptor s_transactions = TransactionsReflection.Descriptor.Services[0];
    private static readonly ServiceDescriptor s_scripts = ScriptsReflection.Descriptor.Services[0];
    private static readonly ServiceDescriptor s_sequences = SequencesReflection.Descriptor.Services[0];
    private static readonly ServiceDescriptor s_locks = LocksReflection.Descriptor.Services[0];
    private static readonly ServiceDescriptor s_cluster = ClusterReflection.Descriptor.Services[0];
    private static readonly ServiceDescriptor s_admin = AdminReflection.Descriptor.Services[0];
    private static readonly ServiceDescriptor s_health = HealthReflection.Descriptor.Services[0];
    private static readonly ServiceDescriptor s_reflection = ReflectionReflection.Descriptor.Services[0];

    private readonly string _name = $"foreign-client/{Guid.NewGuid():n}";

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task Every_method_answers(bool throughLeader)
    {
        DescribedCalls calls = new(throughLeader ? nodes.Leader : nodes.Follower);
        await KeysAsync(calls);
        await TransactionAsync(calls);
        await ScriptAsync(calls);
        await SequencesAsync(calls);
        await LocksAsync(calls);
        await ClusterAsync(calls);
        await FramesAsync(calls);
        await HealthAsync(calls);
        await AdminAsync(calls);
        await ReflectionAsync(calls);
        IEnumerable<string> all = NodeServices.Described()
            .Append(s_reflection)
            .SelectMany(service => service.Methods)
            .Select(method => method.FullName);
        Assert.Equal(
            [.. all.Append("grpc.health.v1.Health.Check").Append("grpc.health.v1.Health.Watch").Order()],
            calls.Answered.Order());
    }

    /// <summary>
    /// These nodes run without authentication, so there is nothing to administer but which node leads.
    /// </summary>
    private static async Task AdminAsync(DescribedCalls calls)
    {
        WhoAmIResponse self = await calls.UnaryAsync<WhoAmIResponse>(s_admin, "WhoAmI", new WhoAmIRequest());
        Assert.Equal(("", "none"), (self.User, self.Method));
        DescribeClusterResponse cluster = await calls.UnaryAsync<DescribeClusterResponse>(
            s_cluster, "DescribeCluster", new DescribeClusterRequest());
        uint leader = cluster.Partitions[0].LeaderNodeId;
        TransferLeadershipResponse led = await calls.UnaryAsync<TransferLeadershipResponse>(
            s_admin, "TransferLeadership", new TransferLeadershipRequest { To = leader });
        Assert.Equal((false, leader), (led.Moved, led.Leader));
        foreach (MethodDescriptor method in s_admin.Methods.Where(
            static method => method.Name is not "WhoAmI" and not "TransferLeadership"))
        {
            await calls.RefusedAsync(method, StatusCode.FailedPrecondition);
        }
    }

    private async Task KeysAsync(DescribedCalls calls)
    {
        Value a = new() { Data = ByteString.CopyFromUtf8("a") };
        SetKeyValueResponse set = await calls.UnaryAsync<SetKeyValueResponse>(
            s_keys,
            "SetKeyValue",
            new SetKeyValueRequest { Key = _name, Durability = Server.Api.Protos.Durability.Persistent, Value = a });
        Assert.True(set.Set);
        GetKeyValueResponse got = await GetAsync();
        Assert.Equal((true, a, set.Revision, false), (got.Found, got.Value, got.Revision, got.HasRemainingTtlMs));

        ExtendKeyValueResponse extended =
            await calls.UnaryAsync<ExtendKeyValueResponse>(s_keys, "ExtendKeyValue", new ExtendKeyValueRequest
            {
                Key = _name,
                Durability = Server.Api.Protos.Durability.Persistent,
                TtlMs = 3_600_000,
            });
        Assert.Equal((true, set.Revision), (extended.Extended, extended.Revision));
        ExistsKeyValueResponse exists = await calls.UnaryAsync<ExistsKeyValueResponse>(
            s_keys,
            "ExistsKeyValue",
            new ExistsKeyValueRequest { Key = _name, Durability = Server.Api.Protos.Durability.Persistent });
        Assert.Equal((true, set.Revision), (exists.Found, exists.Revision));
        Assert.InRange(exists.RemainingTtlMs, 1, 3_600_000);
        ScanKeyValuesResponse scanned = await calls.UnaryAsync<ScanKeyValuesResponse>(
            s_keys,
            "ScanKeyValues",
            new ScanKeyValuesRequest { Prefix = _name, Durability = Server.Api.Protos.Durability.Persistent });
        Assert.Equal((_name, a, ""), (scanned.Entries[0].Key, scanned.Entries[0].Value, scanned.NextPageToken));
        CountKeyValuesResponse counted = await calls.UnaryAsync<CountKeyValuesResponse>(
            s_keys,
            "CountKeyValues",
            new CountKeyValuesRequest { Prefix = _name, Durability = Server.Api.Protos.Durability.Persistent });
        Assert.Equal(scanned.Entries.Count, counted.Count);
        await BatchesAnswerAsync(calls, a);
        StreamKeyValuesResponse streamed = await calls.FirstAsync<StreamKeyValuesResponse>(
            s_keys,
            "StreamKeyValues",
            new StreamKeyValuesRequest { Prefix = _name, Durability = Server.Api.Protos.Durability.Persistent });
        Assert.Equal((scanned.Entries, ""), (streamed.Entries, streamed.NextPageToken));
        WatchKeyValuesResponse watched = await calls.FirstAsync<WatchKeyValuesResponse>(
            s_keys,
            "WatchKeyValues",
            new WatchKeyValuesRequest
            {
                Prefix = _name,
                Durability = Server.Api.Protos.Durability.Persistent,
                WithState = true,
            });
        Assert.Equal(scanned.Entries, watched.State);

        DeleteKeyValueResponse deleted =
            await calls.UnaryAsync<DeleteKeyValueResponse>(s_keys, "DeleteKeyValue", new DeleteKeyValueRequest
            {
                Key = _name,
                Durability = Server.Api.Protos.Durability.Persistent,
                ReturnPrevious = true,
            });
        Assert.Equal((true, a, set.Revision), (deleted.Deleted, deleted.Previous, deleted.PreviousRevision));
        Assert.False((await GetAsync()).Found);

        IncrementKeyValueRequest increment =
            new() { Key = _name, Durability = Server.Api.Protos.Durability.Ephemeral, Amount = -5 };
        Assert.Equal(
            -5, (await calls.UnaryAsync<IncrementKeyValueResponse>(s_keys, "IncrementKeyValue", increment)).Value);
        Assert.Equal(
            -10, (await calls.UnaryAsync<IncrementKeyValueResponse>(s_keys, "IncrementKeyValue", increment)).Value);

        Task<GetKeyValueResponse> GetAsync() =>
            calls.UnaryAsync<GetKeyValueResponse>(
                s_keys,
                "GetKeyValue",
                new GetKeyValueRequest { Key = _name, Durability = Server.Api.Protos.Durability.Persistent });
    }

    private async Task BatchesAnswerAsync(DescribedCalls calls, Value value)
    {
        const Server.Api.Protos.Durability Persistent = Server.Api.Protos.Durability.Persistent;
        string key = _name + "/batch";
        SetManyKeyValuesResponse set = await calls.UnaryAsync<SetManyKeyValuesResponse>(
            s_keys,
            "SetManyKeyValues",
            new SetManyKeyValuesRequest
            {
                Items = { new SetKeyValueRequest { Key = key, Value = value, Durability = Persistent } },
            });
        Assert.True(Assert.Single(set.Outcomes).Result.Set);
        GetManyKeyValuesResponse got = await calls.UnaryAsync<GetManyKeyValuesResponse>(
            s_keys,
            "GetManyKeyValues",
            new GetManyKeyValuesRequest { Items = { new GetKeyValueRequest { Key = key, Durability = Persistent } } });
        Assert.Equal(value, Assert.Single(got.Outcomes).Result.Value);
        ExistsManyKeyValuesResponse exist = await calls.UnaryAsync<ExistsManyKeyValuesResponse>(
            s_keys,
            "ExistsManyKeyValues",
            new ExistsManyKeyValuesRequest
            {
                Items = { new ExistsKeyValueRequest { Key = key, Durability = Persistent } },
            });
        Assert.True(Assert.Single(exist.Outcomes).Result.Found);
        DeleteManyKeyValuesResponse deleted = await calls.UnaryAsync<DeleteManyKeyValuesResponse>(
            s_keys,
            "DeleteManyKeyValues",
            new DeleteManyKeyValuesRequest
            {
                Items = { new DeleteKeyValueRequest { Key = key, Durability = Persistent } },
            });
        Assert.True(Assert.Single(deleted.Outcomes).Result.Deleted);
        DeleteKeyValueRangeResponse range = await calls.UnaryAsync<DeleteKeyValueRangeResponse>(
            s_keys,
            "DeleteKeyValueRange",
            new DeleteKeyValueRangeRequest { Prefix = key, Durability = Persistent });
        Assert.Equal((0, ""), (range.Deleted, range.NextPageToken));
    }

    private async Task TransactionAsync(DescribedCalls calls)
    {
        ExecuteTransactionResponse reply = await calls.UnaryAsync<ExecuteTransactionResponse>(
            s_transactions,
            "ExecuteTransaction",
            new ExecuteTransactionRequest
            {
                Durability = Server.Api.Protos.Durability.Persistent,
                Conditions = { new TransactionCondition { Key = _name + "/t", Absent = true } },
                Then =
                {
                    new TransactionOperation
                    {
                        Increment = new IncrementKeyValueRequest { Key = _name + "/t", Amount = 7 },
                    },
                },
            });
        Assert.Equal((true, 7), (reply.Succeeded, Assert.Single(reply.Results).Increment.Value));
    }

    private async Task ScriptAsync(DescribedCalls calls)
    {
        RunScriptResponse reply = await calls.UnaryAsync<RunScriptResponse>(
            s_scripts,
            "RunScript",
            new RunScriptRequest
            {
                Script = "set @key 7 let value = get @key return to_int(value) + 1",
                Parameters = { ["key"] = new ScriptValue { Text = _name + "/s" } },
            });
        Assert.Equal((8, 1), (reply.Result.Integer, reply.Writes));
    }

    private async Task SequencesAsync(DescribedCalls calls)
    {
        Assert.True(
            (
                await calls.UnaryAsync<CreateSequenceResponse>(
                    s_sequences, "CreateSequence", new CreateSequenceRequest { Name = _name, Max = 5 })).Created);
        Assert.Equal(1, await NextAsync());
        Assert.Equal(new ReserveSequenceRangeResponse { First = 2, Last = 4 }, await ReserveAsync(3));
        RpcException exhausted = await Assert.ThrowsAsync<RpcException>(() => ReserveAsync(2));
        Assert.Equal(
            (StatusCode.OutOfRange, "did-not-happen"),
            (exhausted.StatusCode, exhausted.Trailers.GetValue("kahuna-outcome")));
        Assert.True(
            (
                await calls.UnaryAsync<UpdateSequenceResponse>(
                    s_sequences, "UpdateSequence", new UpdateSequenceRequest { Name = _name, Cycle = true })).Updated);
        Assert.Equal(5, await NextAsync());
        Assert.Equal(1, await NextAsync());

        SequenceDescription expected = new()
        {
            Name = _name,
            Initial = 1,
            Increment = 1,
            Min = 1,
            Max = 5,
            Cycle = true,
            Latest = 1,
        };
        Assert.Equal(
            expected,
            (
                await calls.UnaryAsync<GetSequenceResponse>(
                    s_sequences, "GetSequence", new GetSequenceRequest { Name = _name })).Sequence);
        List<SequenceDescription> listed = [];
        ListSequencesRequest page = new() { Prefix = _name };
        do
        {
            ListSequencesResponse reply = await calls.UnaryAsync<ListSequencesResponse>(
                s_sequences, "ListSequences", page);
            listed.AddRange(reply.Sequences);
            page.PageToken = reply.NextPageToken;
        }
        while (page.PageToken.Length > 0);

        Assert.Equal([expected], listed);
        DeleteSequenceRequest deletion = new() { Name = _name };
        Assert.True((await calls.UnaryAsync<DeleteSequenceResponse>(s_sequences, "DeleteSequence", deletion)).Deleted);
        Assert.False((await calls.UnaryAsync<DeleteSequenceResponse>(s_sequences, "DeleteSequence", deletion)).Deleted);

        async Task<long> NextAsync() =>
            (
                await calls.UnaryAsync<NextSequenceValueResponse>(
                    s_sequences, "NextSequenceValue", new NextSequenceValueRequest { Name = _name })).Value;

        Task<ReserveSequenceRangeResponse> ReserveAsync(long count) =>
            calls.UnaryAsync<ReserveSequenceRangeResponse>(
                s_sequences, "ReserveSequenceRange", new ReserveSequenceRangeRequest { Name = _name, Count = count });
    }

    private async Task LocksAsync(DescribedCalls calls)
    {
        AcquireLockResponse ann = await AcquireAsync("ann");
        Assert.True(ann.Granted);
        AcquireLockResponse bob = await AcquireAsync("bob");
        Assert.Equal((false, ann.Token), (bob.Granted, bob.HolderToken));
        Assert.True(
            (
                await calls.UnaryAsync<ExtendLockResponse>(s_locks, "ExtendLock", new ExtendLockRequest
                {
                    Resource = _name,
                    Durability = Server.Api.Protos.Durability.Persistent,
                    Owner = "ann",
                    Token = ann.Token,
                    LeaseMs = 3_600_000,
                })).Extended);

        GetLockResponse got = await calls.UnaryAsync<GetLockResponse>(
            s_locks,
            "GetLock",
            new GetLockRequest { Resource = _name, Durability = Server.Api.Protos.Durability.Persistent });
        LockHolder holder = Assert.Single(got.Lock.Holders);
        Assert.Equal(
            ("ann", ann.Token, Server.Api.Protos.LockMode.Exclusive), (holder.Owner, holder.Token, holder.Mode));
        List<string> listed = [];
        ListLocksRequest page = new() { Prefix = _name, Durability = Server.Api.Protos.Durability.Persistent };
        do
        {
            ListLocksResponse reply = await calls.UnaryAsync<ListLocksResponse>(s_locks, "ListLocks", page);
            listed.AddRange(reply.Locks.Select(each => each.Resource));
            page.PageToken = reply.NextPageToken;
        }
        while (page.PageToken.Length > 0);

        Assert.Equal([_name], listed);
        Task<ObserveLockResponse> observing =
            calls.UnaryAsync<ObserveLockResponse>(s_locks, "ObserveLock", new ObserveLockRequest
            {
                Resource = _name,
                Durability = Server.Api.Protos.Durability.Persistent,
                KnownToken = ann.Token,
                HoldMs = 30_000,
            });
        ReleaseLockRequest release = new()
        {
            Resource = _name,
            Durability = Server.Api.Protos.Durability.Persistent,
            Owner = "ann",
            Token = ann.Token,
        };
        Assert.True((await calls.UnaryAsync<ReleaseLockResponse>(s_locks, "ReleaseLock", release)).Released);
        Assert.False((await calls.UnaryAsync<ReleaseLockResponse>(s_locks, "ReleaseLock", release)).Released);
        Assert.Equal(0, (await observing).Token);

        Task<AcquireLockResponse> AcquireAsync(string owner) =>
            calls.UnaryAsync<AcquireLockResponse>(
                s_locks, "AcquireLock", UnaryLocks.Request(_name, Server.Api.Protos.Durability.Persistent, owner));
    }

    private static async Task ClusterAsync(DescribedCalls calls)
    {
        // A change of leader takes readiness away for a moment.
        DescribeClusterResponse described;
        long began = Stopwatch.GetTimestamp();
        do
        {
            described = await calls.UnaryAsync<DescribeClusterResponse>(
                s_cluster, "DescribeCluster", new DescribeClusterRequest());
        }
        while (!described.Ready && Stopwatch.GetElapsedTime(began) < LastNet.Span);

        Assert.True(described.Ready);
        Assert.Equal([1u, 2u, 3u], described.Nodes.Select(node => node.Id));
        DescribeClusterResponse watched = await calls.FirstAsync<DescribeClusterResponse>(
            s_cluster, "WatchCluster", new DescribeClusterRequest());
        Assert.Equal(
            (described.ClusterId, described.NodeId, described.Partitions.Count),
            (watched.ClusterId, watched.NodeId, watched.Partitions.Count));
    }

    /// <summary>A greeting, and a read of the key that was incremented; docs/wire-format.md has the bytes.</summary>
    private async Task FramesAsync(DescribedCalls calls)
    {
        byte[] key = Encoding.UTF8.GetBytes(_name);
        byte[] hello = Payload(kind: 1, WireVersion, count: 0);
        byte[] command = [0x80, 2, 0, 0, .. Number((uint)key.Length), 0, 0, 0, 0, .. key];
        byte[] request = [.. Number(7), .. Number(1u << 31), .. Number((uint)command.Length), .. command];
        List<Frame> frames = await calls.ExchangeAsync<Frame, Frame>(
            s_cluster,
            "Exchange",
            new Frame { Payload = ByteString.CopyFrom(hello) },
            new Frame { Payload = ByteString.CopyFrom([.. Payload(kind: 2, version: 0, count: 1), .. request]) });
        byte[] slotMapVersion = [1, 0, 0, 0, 0, 0, 0, 0];
        List<Frame> greeting = await calls.ExchangeAsync<Frame, Frame>(
            s_cluster, "Watch", new Frame { Payload = ByteString.CopyFrom(hello) });
        Assert.Equal(
            [.. Payload(kind: 1, WireVersion, count: 1), .. slotMapVersion], greeting[0].Payload.ToByteArray());
        Assert.Equal([.. Payload(kind: 1, WireVersion, count: 1), .. slotMapVersion], frames[0].Payload.ToByteArray());
        Assert.Equal(Payload(kind: 4, version: 0, count: 1), frames[1].Payload.ToByteArray()[..8]);
        Assert.Equal(3, DescribeClusterResponse.Parser.ParseFrom(frames[1].Payload.Span[8..]).Nodes.Count);

        // The map may come again when a leader changes.
        byte[] replies = Assert.Single(frames, frame => frame.Payload[0] == 3).Payload.ToByteArray();
        Assert.Equal([.. Payload(kind: 3, version: 0, count: 1), .. Number(7)], replies[..12]);
        Assert.Equal((2, "-10"), (replies[16], Encoding.UTF8.GetString(replies[40..])));
    }

    private static async Task HealthAsync(DescribedCalls calls)
    {
        foreach (string service in NodeServices.Described().Select(service => service.FullName).Append(""))
        {
            HealthCheckRequest request = new() { Service = service };
            Assert.Equal(
                ServingStatus.Serving,
                (await calls.UnaryAsync<HealthCheckResponse>(s_health, "Check", request)).Status);
            Assert.Equal(
                ServingStatus.Serving,
                (await calls.FirstAsync<HealthCheckResponse>(s_health, "Watch", request)).Status);
        }
    }

    private static async Task ReflectionAsync(DescribedCalls calls)
    {
        foreach (ServiceDescriptor service in NodeServices.Described())
        {
            List<ServerReflectionResponse> replies =
                await calls.ExchangeAsync<ServerReflectionRequest, ServerReflectionResponse>(
                s_reflection,
                "ServerReflectionInfo",
                new ServerReflectionRequest { ListServices = "" },
                new ServerReflectionRequest { FileContainingSymbol = service.FullName });
            Assert.Contains(replies[0].ListServicesResponse.Service, listed => listed.Name == service.FullName);
            Assert.Contains(service.File.SerializedData, replies[1].FileDescriptorResponse.FileDescriptorProto);
        }
    }

    private static byte[] Payload(byte kind, ushort version, uint count) =>
        [kind, 0, (byte)version, (byte)(version >> 8), .. Number(count)];

    private static byte[] Number(uint value)
    {
        byte[] bytes = new byte[4];
        BinaryPrimitives.WriteUInt32LittleEndian(bytes, value);
        return bytes;
    }
}
