using System.Text;
using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Api.Watches;

/// <summary>
/// The change logs of a node whose state a test makes up, and all changes that were ever written. Owned by one test.
/// </summary>
internal sealed class LoggedChanges(int partitions = 2, long bytes = 1)
{
    private readonly Dictionary<uint, (Epoch Epoch, ulong Index)> _applied = [];

    public ChangeLogs Logs { get; } = new(new GroupLayout(partitions, hasEphemeral: true), bytes);

    /// <summary>All changes that were published, in the order of each group.</summary>
    public List<LoggedChange> All { get; } = [];

    public ChangeLog Log(int partition, bool isEphemeral = false) =>
        Logs[isEphemeral ? partitions + partition : partition]!;

    /// <summary>Applies an entry. Changes whose transaction is not 0 belong together.</summary>
    public ulong Apply(ChangeLog log, params (string Key, string? Value, int Transaction)[] changes)
    {
        (Epoch epoch, ulong index) = _applied.GetValueOrDefault(log.Group.Value);
        index++;
        List<LoggedChange> told = [];
        foreach ((string key, string? value, int transaction) in changes)
        {
            Change change = new()
            {
                Kind = value is null ? ChangeKind.Deleted : ChangeKind.Written,
                Key = Encoding.UTF8.GetBytes(key),
                Value = value is null ? default : Encoding.UTF8.GetBytes(value),
                Revision = new Revision((long)index),
                Transaction = transaction,
            };
            log.Changed(new ChangePosition(log.Group, epoch, new LogIndex(index), told.Count), in change);
            told.Add(new LoggedChange(
                new ChangePoint(log.Group.Value, epoch.Value, index, (uint)told.Count), key, value, transaction));
        }

        Publish(log, epoch, index);
        All.AddRange(told);
        return index;
    }

    /// <summary>Applies an entry with one change.</summary>
    public ulong Set(ChangeLog log, string key, string value) => Apply(log, (key, value, 0));

    /// <summary>A snapshot replaces the state, and skips this number of entries.</summary>
    public void Skip(ChangeLog log, ulong entries)
    {
        (Epoch epoch, ulong index) = _applied.GetValueOrDefault(log.Group.Value);
        _applied[log.Group.Value] = (epoch, index + entries);
        log.Restart(epoch, new LogIndex(index + entries));
        log.Announce();
    }

    /// <summary>A new epoch begins, empty.</summary>
    public void BeginEpoch(ChangeLog log)
    {
        Epoch epoch = new(_applied.GetValueOrDefault(log.Group.Value).Epoch.Value + 1);
        _applied[log.Group.Value] = (epoch, 0);
        log.Restart(epoch, default);
        log.Announce();
    }

    private void Publish(ChangeLog log, Epoch epoch, ulong index)
    {
        _applied[log.Group.Value] = (epoch, index);
        log.Publish(new LogIndex(index));
        log.Announce();
    }
}

/// <summary>One published change. Immutable.</summary>
internal sealed record LoggedChange(ChangePoint Point, string Key, string? Value, int Transaction)
{
    /// <summary>A watch of this scope and name is about the key.</summary>
    public bool IsOf(WatchScope scope, string name) => scope switch
    {
        WatchScope.Key => Key == name,
        WatchScope.Bucket => (Key.LastIndexOf('/') is >= 0 and int slash ? Key[..slash] : Key) == name,
        _ => Key.StartsWith(name, StringComparison.Ordinal),
    };
}
