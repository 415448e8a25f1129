using System.Reflection;
using System.Text.RegularExpressions;
using Kahuna.Client;
using Kahuna.Client.Elections;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Client.Sequences;
using Kahuna.Tests.Tidy;
using Kahuna.Wire.Commands;
using Mono.Cecil;

namespace Kahuna.Tests.Simulation;

/// <summary>
/// The simulator's workload uses the whole API: every operation and every option of the SDK, and every kind of command,
/// is in it, or is named here with the reason why not.
/// </summary>
[Collection(CompiledCodeCollection.Name)]
public sealed partial class WorkloadCoverageTests
{
    private const string Workload = "Kahuna.Tests.Simulation.Workload";

    private static readonly Type[] s_facades =
    [
        typeof(KahunaClient),
        typeof(KeyValueClient),
        typeof(SequenceClient),
        typeof(LockClient),
        typeof(SemaphoreClient),
        typeof(ElectionClient),
        typeof(LockHandle),
        typeof(Leadership),
    ];

    private static readonly Type[] s_options =
    [
        typeof(SetOptions),
        typeof(ReadOptions),
        typeof(DeleteOptions),
        typeof(ExtendOptions),
        typeof(IncrementOptions),
        typeof(ScanOptions),
        typeof(BatchOptions),
        typeof(DeleteByPrefixOptions),
        typeof(SequenceDefinition),
        typeof(SequenceChange),
        typeof(SequenceOptions),
        typeof(LockOptions),
    ];

    /// <summary>Operations and options that the workload does without.</summary>
    private static readonly Dictionary<string, string> s_without = new()
    {
        ["KahunaClient.Connect"] = "opens sockets; a run has its own channel",
        ["KahunaClient.DescribeAsync"] = "lists ask for it (ClusterConnection.PartitionsAsync)",
        ["KahunaClient.CheckAsync"] = "made of reads and DescribeAsync; Client/WaitingTests",
        ["KahunaClient.DisposeAsync"] = "callers go on to the end of a run; Client tests",
        ["LockHandle.ExtendAsync"] = "AutoRenew renews by the same command, and unary callers extend",
        ["LockClient.ExtendAsync"] = "for handles of another process; the command of AutoRenew and of unary callers",
        ["LockClient.ReleaseAsync"] =
            "for handles of another process; the command of LockHandle.ReleaseAsync and of unary callers",
        ["ElectionClient.GetLeaderAsync"] = "the read that ObserveAsync begins with",
        ["Leadership.DisposeAsync"] = "resigns, as ResignAsync does",
        ["LockOptions.Note"] = "candidates leave notes as their names",
        ["LockOptions.RenewFor"] = "ends renewing by the client's own clock; Client/LockHandleTests",
        ["ExtendOptions.OnlyIfValue"] = "the conditions of set and delete, checked by the same code (StateMachine)",
        ["ExtendOptions.OnlyIfRevision"] = "the conditions of set and delete, checked by the same code (StateMachine)",
        ["KeyValueClient.CountAsync"] = "the pages of ScanAsync without entries; State/RangeTests, Api/ScanTests",
        ["KeyValueClient.GetPositionAsync"] = "the read that a watch from now begins with",
        ["KeyValueClient.CacheAsync"] =
            "a watch with state that keeps what it is told; Client/Watches/WatchClusterTests",
        ["ReadOptions.WithPosition"] =
            "watches with state read pages with positions; Client/Watches/WatchStateTests",
        ["KeyValueClient.GetAndDeleteAsync"] = "DeleteAsync with ReturnPrevious",
        ["BatchOptions.Fence"] = "the fence of a set, checked by the same code; Api/BatchTests",
        ["DeleteByPrefixOptions.To"] = "the end of a prefix is one; State/TransactionTests, Api/BatchTests",
        ["DeleteByPrefixOptions.AllKeys"] = "would delete the keys of all callers; Api/BatchTests",
        ["SequenceChange.Increment"] = "a changed step leaves no rule for gaps; State/Sequences/SequenceTableTests",
        ["SequenceChange.Min"] = "as Max, in the other direction; State/Sequences/SequenceTableTests",
        ["SequenceChange.Cycle"] = "a changed cycle leaves no rule for gaps; State/Sequences/SequenceTableTests",
    };

    /// <summary>What asks for each kind of command in a run.</summary>
    private static readonly Dictionary<CommandKind, string> s_kinds = new()
    {
        [CommandKind.Set] = "KeyValueClient.SetAsync",
        [CommandKind.Delete] = "KeyValueClient.DeleteAsync",
        [CommandKind.Extend] = "KeyValueClient.ExtendAsync",
        [CommandKind.Increment] = "KeyValueClient.IncrementAsync",
        [CommandKind.Get] = "KeyValueClient.GetAsync",
        [CommandKind.Exists] = "KeyValueClient.ExistsAsync",
        [CommandKind.KeyRange] = "KeyValueClient.ScanAsync",
        [CommandKind.KeyRangeDelete] = "KeyValueClient.DeleteByPrefixAsync",
        [CommandKind.Transaction] = "KeyValueClient.SetManyAsync",
        [CommandKind.Script] = "ScriptClient.RunAsync",
        [CommandKind.TransactionPrepare] = "LeavingCoordinator.CommitAsync",
        [CommandKind.TransactionDecide] = "LeavingCoordinator.CommitAsync",
        [CommandKind.TransactionFinish] = "LeavingCoordinator.CommitAsync",
        [CommandKind.TransactionForget] = "LeavingCoordinator.CommitAsync",
        [CommandKind.GetMany] = "KeyValueClient.GetManyAsync",
        [CommandKind.TransactionHold] = "Transaction.GetForUpdateAsync",
        [CommandKind.TransactionRelease] = "Transaction.DisposeAsync",
        [CommandKind.CutOpen] = "KeyValueClient.ScanAsync",
        [CommandKind.CutConfirm] = "KeyValueClient.ScanAsync",
        [CommandKind.CutEnd] = "KeyValueClient.ScanAsync",
        [CommandKind.SequenceCreate] = "SequenceClient.CreateAsync",
        [CommandKind.SequenceUpdate] = "SequenceClient.UpdateAsync",
        [CommandKind.SequenceDelete] = "SequenceClient.DeleteAsync",
        [CommandKind.SequenceNext] = "SequenceClient.ReserveAsync",
        [CommandKind.SequenceGet] = "SequenceClient.GetAsync",
        [CommandKind.SequenceList] = "SequenceClient.ListAsync",
        [CommandKind.LockAcquire] = "LockClient.AcquireAsync",
        [CommandKind.LockExtend] = "LockClient.AcquireAsync",
        [CommandKind.LockRelease] = "LockHandle.ReleaseAsync",
        [CommandKind.LockAwait] = "LockClient.AcquireAsync",
        [CommandKind.LockGet] = "LockClient.GetAsync",
        [CommandKind.LockList] = "LockClient.ListAsync",
        [CommandKind.LockObserve] = "ElectionClient.ObserveAsync",
    };

    /// <summary>Kinds that no client asks for.</summary>
    private static readonly Dictionary<CommandKind, string> s_ownKinds = new()
    {
        [CommandKind.Unset] = "no command",
        [CommandKind.ExpireSweep] = "leaders propose it when keys fall due",
        [CommandKind.SessionSweep] = "leaders propose it when sessions are idle",
        [CommandKind.Evict] = "leaders propose it in seeds with little room",
        [CommandKind.LockSweep] = "leaders propose it when leases and waits end",
        [CommandKind.Configure] = "the meta group's own, at the first start",
        [CommandKind.RegisterNode] = "the meta group's own, at each start of a member",
        [CommandKind.Pledge] = "the meta group's own, when an epoch is given up",
        [CommandKind.ReleasePledge] = "the meta group's own, when a pledge is given back",
        [CommandKind.RaiseCeiling] = "the meta group's own, for leases above the ceiling",
        [CommandKind.RaiseFeatureLevel] = "the meta group's own, when all nodes support a higher level",
        [CommandKind.AccessChange] = "the nodes' ledgers', which the run's administrator asks",
        [CommandKind.FeatureProbe] = "for tests of feature levels",
        [CommandKind.MoveSlots] = "the mover's, where a slot moves",
        [CommandKind.ReleaseSlots] = "the mover's, where a slot moves",
        [CommandKind.AdoptSlots] = "the mover's, where a slot moves",
    };

    private static readonly HashSet<string> s_used = [.. Used()];

    [Fact]
    public void Every_operation_is_in_the_workload() =>
        Findings.AssertNone(
            Operations().Where(static name => !s_used.Contains(name) && !s_without.ContainsKey(name)).Select(
                static name => $"{name} is not in the simulator's workload"));

    [Fact]
    public void Every_option_is_in_the_workload() =>
        Findings.AssertNone(
            Options().Where(static name => !s_used.Contains(name) && !s_without.ContainsKey(name)).Select(
                static name => $"{name} is not in the simulator's workload"));

    [Fact]
    public void Every_kind_of_command_is_in_the_workload()
    {
        Findings.AssertNone(
            Enum.GetValues<CommandKind>()
                .Where(static kind => !s_kinds.ContainsKey(kind) && !s_ownKinds.ContainsKey(kind))
                .Select(static kind => $"{kind} is not in the simulator's workload"));
        Findings.AssertNone(s_kinds.Where(static pair => !s_used.Contains(pair.Value)).Select(
            static pair => $"{pair.Key} is asked for by {pair.Value}, which is not in the simulator's workload"));
    }

    [Fact]
    public void Tests_that_a_reason_names_are_there() => Findings.AssertNone(s_without.Values.Concat(s_ownKinds.Values)
        .SelectMany(static reason => TestNames().Matches(reason))
        .Select(static match => $"Kahuna.Tests/{match.Value}.cs")
        .Where(static file => !Repository.Files.Contains(file)));

    [Fact]
    public void Exceptions_are_of_what_there_is_and_is_not_used()
    {
        HashSet<string> all = [.. Operations(), .. Options()];
        Findings.AssertNone(
            s_without.Keys.Where(name => !all.Contains(name)).Select(static name => $"there is no {name}"));
        Findings.AssertNone(s_without.Keys.Where(s_used.Contains).Select(
            static name => $"{name} is in the workload, and is no exception any more"));
    }

    [GeneratedRegex(@"\w+(/\w+)*/\w+Tests\b")]
    private static partial Regex TestNames();

    private static IEnumerable<string> Operations() => s_facades.SelectMany(static type => type
        .GetMethods(BindingFlags.Public | BindingFlags.Instance | BindingFlags.Static | BindingFlags.DeclaredOnly)
        .Where(static method => !method.IsSpecialName)
        .Select(method => $"{type.Name}.{method.Name}")).Distinct();

    private static IEnumerable<string> Options() => s_options.SelectMany(static type => type
        .GetProperties(BindingFlags.Public | BindingFlags.Instance | BindingFlags.DeclaredOnly)
        .Where(static property => property.CanWrite)
        .Select(property => $"{type.Name}.{property.Name}"));

    /// <summary>The methods that the workload's compiled code calls, and the properties that it sets.</summary>
    private static IEnumerable<string> Used()
    {
        using AssemblyDefinition tests = AssemblyDefinition.ReadAssembly(
            typeof(WorkloadCoverageTests).Assembly.Location);
        return
        [
            .. tests.MainModule.Types.Where(static type => type.Namespace == Workload).SelectMany(CodeReferences.Of)
                .Where(static reference => reference.Member is not null)
                .Select(static reference => (reference.Type.Name, Member: reference.Member!))
                .Select(static used => $"{used.Name}.{used.Member}".Replace(".set_", ".", StringComparison.Ordinal)),
        ];
    }
}
