using Kahuna.Server.Primitives;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions;

/// <summary>
/// Port: where a node keeps the states of its persistent partitions between flushes, so that the log below them can be cut. A write takes effect as a whole, when it is
/// on stable storage, or not at all. Errors are <see cref="IOException"/> and name file or directory. One thread at a time.
/// </summary>
internal interface IStateStore : IDisposable
{
    /// <summary>True when each write must bring the whole state of the group, false when it brings the keys that changed since the last one.</summary>
    bool TakesWholeStates { get; }

    /// <summary>What is stored of a group; null when nothing is.</summary>
    StateMark? Find(GroupId group);

    /// <summary>Hands out every record of a group, checked, in any order. The span is valid during the call.</summary>
    void Load(GroupId group, StateRecordSink sink);

    /// <summary>Begins a write, which replaces what is stored of the group when it is committed. One at a time.</summary>
    IStateWriter BeginWrite(GroupId group, in StateMark mark);
}

/// <summary>One write to a state store. Disposed without a commit it leaves nothing behind.</summary>
internal interface IStateWriter : IDisposable
{
    /// <summary>Adds records as a view hands them out: each preceded by its length (u32).</summary>
    void Add(ReadOnlySpan<byte> records);

    /// <summary>Returns when everything is on stable storage and is what the store has.</summary>
    void Commit();
}

/// <summary>Takes one record of a state, without its length.</summary>
internal delegate void StateRecordSink(ReadOnlySpan<byte> record);

/// <summary>A stored state: the last log entry that is in it, and what belongs to it besides its records.</summary>
internal readonly record struct StateMark(LogIndex Index, Term Term, StateSummary Summary);
