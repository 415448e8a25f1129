using Kahuna.Client.Wire.Protos;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Grpc;

namespace Kahuna.Server.Hosting;

/// <summary>The list of gRPC services and methods that a node serves. Stateless.</summary>
internal static class NodeServices
{
    /// <summary>What the health service speaks of: the node as a whole (the empty name) and its services.</summary>
    public static ReadOnlySpan<string> Names => s_names;

    private static readonly string[] s_names = ["", "kahuna.v1.KeyValues", "kahuna.v1.Sequences", "kahuna.v1.Locks", "kahuna.v1.Cluster"];

    public static GrpcServer Bind(GrpcServer server, KeyValuesService keys, SequencesService sequences, LocksService locks, ClusterService cluster) => server
        .AddService(KeyValuesReflection.Descriptor.Services[0], service => service
            .Unary<SetKeyValueRequest, SetKeyValueResponse>(nameof(keys.SetKeyValue), keys.SetKeyValue)
            .Unary<GetKeyValueRequest, GetKeyValueResponse>(nameof(keys.GetKeyValue), keys.GetKeyValue)
            .Unary<ExistsKeyValueRequest, ExistsKeyValueResponse>(nameof(keys.ExistsKeyValue), keys.ExistsKeyValue)
            .Unary<DeleteKeyValueRequest, DeleteKeyValueResponse>(nameof(keys.DeleteKeyValue), keys.DeleteKeyValue)
            .Unary<ExtendKeyValueRequest, ExtendKeyValueResponse>(nameof(keys.ExtendKeyValue), keys.ExtendKeyValue)
            .Unary<IncrementKeyValueRequest, IncrementKeyValueResponse>(nameof(keys.IncrementKeyValue), keys.IncrementKeyValue))
        .AddService(SequencesReflection.Descriptor.Services[0], service => service
            .Unary<CreateSequenceRequest, CreateSequenceResponse>(nameof(sequences.CreateSequence), sequences.CreateSequence)
            .Unary<NextSequenceValueRequest, NextSequenceValueResponse>(nameof(sequences.NextSequenceValue), sequences.NextSequenceValue)
            .Unary<ReserveSequenceRangeRequest, ReserveSequenceRangeResponse>(nameof(sequences.ReserveSequenceRange), sequences.ReserveSequenceRange)
            .Unary<GetSequenceRequest, GetSequenceResponse>(nameof(sequences.GetSequence), sequences.GetSequence)
            .Unary<UpdateSequenceRequest, UpdateSequenceResponse>(nameof(sequences.UpdateSequence), sequences.UpdateSequence)
            .Unary<DeleteSequenceRequest, DeleteSequenceResponse>(nameof(sequences.DeleteSequence), sequences.DeleteSequence)
            .Unary<ListSequencesRequest, ListSequencesResponse>(nameof(sequences.ListSequences), sequences.ListSequences))
        .AddService(LocksReflection.Descriptor.Services[0], service => service
            .Unary<AcquireLockRequest, AcquireLockResponse>(nameof(locks.AcquireLock), locks.AcquireLock)
            .Unary<ExtendLockRequest, ExtendLockResponse>(nameof(locks.ExtendLock), locks.ExtendLock)
            .Unary<ReleaseLockRequest, ReleaseLockResponse>(nameof(locks.ReleaseLock), locks.ReleaseLock)
            .Unary<GetLockRequest, GetLockResponse>(nameof(locks.GetLock), locks.GetLock)
            .Unary<ListLocksRequest, ListLocksResponse>(nameof(locks.ListLocks), locks.ListLocks)
            .Unary<ObserveLockRequest, ObserveLockResponse>(nameof(locks.ObserveLock), locks.ObserveLock))
        .AddService(ClusterReflection.Descriptor.Services[0], service => service
            .Unary<DescribeClusterRequest, DescribeClusterResponse>(nameof(cluster.DescribeCluster), cluster.DescribeCluster)
            .ServerStreaming<DescribeClusterRequest, DescribeClusterResponse>(nameof(cluster.WatchCluster), cluster.WatchCluster)
            .RawDuplex(nameof(cluster.Exchange), cluster.Exchange));
}
