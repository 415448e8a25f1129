using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>
/// A state that arrives in one transfer. Memory: the bytes of one record at the most, and with a loader the state.
/// Owned by a <see cref="SnapshotSink"/>.
/// </summary>
internal sealed class Receiving(NodeId from, SnapshotHeader header, CheckpointMark mark, IStateWriter? writer,
    StateLoader? loader) : IDisposable
{
    private readonly ByteBuffer _records = ByteBuffer.Rent();
    private ulong _digest;
    private string? _malformed;

    /// <summary>A transfer has begun.</summary>
    /// <param name="options">Limits of the state.</param>
    /// <param name="store">Where a state is stored that is not of an ephemeral group.</param>
    /// <param name="from">Who sends it.</param>
    /// <param name="header">What its first chunk says.</param>
    /// <param name="mark">What the state ends with.</param>
    /// <param name="isLoaded">The state is loaded as it comes.</param>
    /// <exception cref="FeatureLevelException">The state has a feature level that this build does not
    /// support.</exception>
    public static Receiving Begin(CheckpointOptions options, IStateStore store, NodeId from, SnapshotHeader header,
        CheckpointMark mark, bool isLoaded)
    {
        GroupId group = header.Group;
        FeatureLevelException.Require(
            mark.Level, options.StateLimits, $"in a snapshot of {group.Name} from node {from}");
        StateLimits limits = group.IsEphemeral ? options.StateLimits.InEpoch(header.Epoch) : options.StateLimits;
        StateLoader? loader = isLoaded ? new StateLoader(limits, mark.Summary) : null;
        IStateWriter? writer = group.IsEphemeral ? null : store.BeginWrite(group, mark, whole: true);
        return new Receiving(from, header, mark, writer, loader);
    }

    public NodeId From => from;

    public SnapshotHeader Header => header;

    public GroupId Group => header.Group;

    public ulong Transfer => header.Transfer;

    public Term Term => header.Term;

    public CheckpointMark Mark => mark;

    /// <summary>Where it is stored; null for a group whose state is not.</summary>
    public IStateWriter? Writer => writer;

    /// <summary>The whole state, when it was loaded as it came; once it is verified.</summary>
    public StateMachine? State { get; private set; }

    /// <summary>The next chunk that is wanted.</summary>
    public ulong Next { get; set; }

    public bool Complete { get; set; }

    /// <summary>The loop was asked and has not answered.</summary>
    public bool Asking { get; set; }

    public NodeTime Due { get; set; }

    /// <summary>When it last told the sender that a state is being loaded.</summary>
    public NodeTime SaidAt { get; set; }

    /// <summary>Writes the whole records; what is left of the last one waits for the next chunk.</summary>
    public void Take(ReadOnlySpan<byte> bytes)
    {
        _records.Append(bytes);
        ReadOnlySpan<byte> rest = _records.Written;
        while (RowImage.TryTake(ref rest, out RowImage record))
        {
            Take(record);
        }

        int whole = _records.Length - rest.Length;
        if (whole > 0)
        {
            writer?.Add(_records.Array.AsSpan(0, whole));
            rest.CopyTo(_records.Array);
            _records.Length = rest.Length;
        }
    }

    public bool IsVerified(out string? wrong)
    {
        wrong = _records.Length > 0 ? "its last record is cut." : _malformed;
        if (wrong is null && loader is null && _digest != mark.Summary.Digest)
        {
            wrong = $"its digest is {_digest:x16}, and should be {mark.Summary.Digest:x16}.";
        }
        else if (wrong is null && loader is not null)
        {
            try
            {
                State = loader.Finish();
            }
            catch (InvalidDataException error)
            {
                wrong = error.Message + ".";
            }
        }

        return wrong is null;
    }

    public void Dispose()
    {
        writer?.Dispose();
        _records.Return();
    }

    private void Take(RowImage record)
    {
        if (_malformed is not null)
        {
            return;
        }

        try
        {
            loader?.Add(record.Bytes);
            if (loader is null && !KeyRecord.TryAddDigest(record.Bytes, mark.Summary.FirstHistoryNumber,
                ref _digest))
            {
                _malformed = "a record is damaged.";
            }
        }
        catch (InvalidDataException error)
        {
            _malformed = error.Message + ".";
        }
    }
}
