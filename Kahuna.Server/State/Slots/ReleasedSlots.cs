using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Dispatch;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.State.Slots;

/// <summary>
/// The slots that this group has given away, in the row <c>0xFF P</c>. Their keys are refused, whatever the router of a
/// node believes: the log orders the release among the writes, so none is accepted behind it. A group that has given
/// nothing away has no row and hashes nothing. Owned by one <see cref="StateMachine"/>; not thread-safe.
/// </summary>
/// <remarks>
/// The value: <c>u16 first, u16 last, u8 1 = released, 0 = taken back, u64 version</c> for each range of slots with one
/// fate, ascending. The version of a release is that of the map that the move began with. A command that comes late,
/// with a lower version than the row has, changes nothing.
/// </remarks>
internal sealed class ReleasedSlots : CommandHandler
{
    private const int RangeBytes = 13;

    private static readonly byte[] s_name = SystemRowKind.ReleasedSlots.ToName();

    private readonly KeyStore _store;

    /// <summary>What the row says of each slot; null without a row.</summary>
    private Fate[]? _fates;

    /// <summary>True while any slot is released.</summary>
    private bool _isAnyReleased;

    /// <summary>Takes what the store says.</summary>
    /// <exception cref="InvalidDataException">The stored row is damaged.</exception>
    public ReleasedSlots(KeyStore store)
    {
        _store = store;
        if (store.System.Find(s_name) is { IsNone: false } row)
        {
            _fates = Read(store.Keys.Value(in store.Keys[row]))
                ?? throw new InvalidDataException("the row of released slots is damaged");
            _isAnyReleased = Array.Exists(_fates, static fate => fate.IsReleased);
        }
    }

    /// <summary>An epoch begins empty: the slots that its map gives to others are released.</summary>
    public void Begin(StateLimits limits)
    {
        if (limits.SlotsBefore is not { } map)
        {
            return;
        }

        Fate[] fates = new Fate[KeyRouting.Slots];
        for (int slot = 0; slot < fates.Length; slot++)
        {
            // The move began with an earlier map than the one that shows it.
            fates[slot] = map[slot] == limits.Partition ? default : new Fate(map.Version - 1, IsReleased: true);
        }

        Keep(fates);
    }

    /// <summary>True when the command's key belongs to another group by now.</summary>
    public bool Refuses(scoped in Command command) =>
        _isAnyReleased
            && CommandKinds.Has(command.Kind, CommandTraits.FromClients)
            && !CommandKinds.Has(command.Kind, CommandTraits.IsList)
            && ReleasedSlotOf(in command) is not null;

    /// <summary>
    /// While the group has given the slot away: the version of the map that the move began with; otherwise 0. A move
    /// may be recorded once a node shows its version: a node that lags may still show that of an earlier move.
    /// </summary>
    public ulong ReleasedIn(int slot) => _isAnyReleased && _fates![slot].IsReleased ? _fates[slot].Version : 0;

    /// <summary>
    /// True when a slot that was given away has a key, a lock or a sequence. Linear in the state's size.
    /// </summary>
    public bool HoldsReleased() => _isAnyReleased && HoldsAny(_fates!);

    /// <summary>The answer to such a command: the version of the first map that may name the other group.</summary>
    public Outcome Refusal(scoped in Command command) =>
        new(OutcomeStatus.SlotMoved, revision: (long)(_fates![ReleasedSlotOf(in command)!.Value].Version + 1));

    /// <summary>The first slot of the command's keys that was given away; null: none was.</summary>
    private int? ReleasedSlotOf(scoped in Command command)
    {
        int slot = KeyRouting.Slot(command.Key);
        if (_fates![slot].IsReleased)
        {
            return slot;
        }

        if (CommandKinds.Has(command.Kind, CommandTraits.HasItems))
        {
            ReadOnlySpan<byte> items = CommandList.ItemsOf(in command);
            while (CommandList.TryTake(ref items, out Command item))
            {
                if (RangeCondition.Is(in item))
                {
                    if (ReleasedSince(_fates, new RangeCondition(in item).MapVersion) is { } moved)
                    {
                        return moved;
                    }

                    continue;
                }

                slot = KeyRouting.Slot(item.Key);
                if (_fates[slot].IsReleased)
                {
                    return slot;
                }
            }
        }

        return null;
    }

    /// <inheritdoc/>
    public override void Apply(scoped in Command command, ClusterTime time, KnownHash known, CommandAnswer answer)
    {
        SlotCommand? asked = SlotCommand.Read(in command);
        InvariantException.Require(asked is not null, "a command about slots decodes");
        Fate[] fates = _fates is null ? new Fate[KeyRouting.Slots] : [.. _fates];
        bool isRelease = asked.Kind == CommandKind.ReleaseSlots;
        foreach (SlotRange range in asked.Ranges)
        {
            for (int slot = range.First; slot <= range.Last; slot++)
            {
                ref Fate fate = ref fates[slot];
                if (isRelease ? asked.Version >= fate.Version : fate.IsReleased && asked.Version > fate.Version)
                {
                    fate = new Fate(asked.Version, isRelease);
                }
            }
        }

        if (isRelease && HoldsAny(fates))
        {
            answer.Give(new Outcome(OutcomeStatus.ConditionFailed));
            return;
        }

        if (_fates is not null || isRelease)
        {
            Keep(fates);
        }

        answer.Give(new Outcome(OutcomeStatus.Applied));
    }

    /// <summary>
    /// True when a slot that would be released has a row. Data does not move with its slot, so such a slot is kept.
    /// Linear in the state's size: slots move seldom.
    /// </summary>
    private bool HoldsAny(Fate[] fates)
    {
        for (Row row = Row.First; row.Value <= _store.Keys.Count; row = row.Next)
        {
            ref readonly KeyEntry entry = ref _store.Keys[row];
            if (entry.IsFree)
            {
                continue;
            }

            ReadOnlySpan<byte> name = _store.Keys.Key(in entry);
            SystemRowKind? kind = SystemRowKind.Of(name);
            if (kind == SystemRowKind.PreparedPart || kind == SystemRowKind.Decision)
            {
                if (ConcernsAny(fates, kind, _store.Keys.Value(in entry)))
                {
                    return true;
                }
            }
            else if (kind is null || kind == SystemRowKind.Lock || kind == SystemRowKind.Sequence)
            {
                ReadOnlySpan<byte> key = kind is null ? name : name[SystemRowKind.PrefixBytes..];
                if (fates[KeyRouting.Slot(key)].IsReleased)
                {
                    return true;
                }
            }
        }

        return false;
    }

    /// <summary>True when a transaction holds a key of such a slot, or its decision is found by one.</summary>
    private static bool ConcernsAny(Fate[] fates, SystemRowKind kind, ReadOnlySpan<byte> value)
    {
        if (kind == SystemRowKind.Decision)
        {
            return fates[KeyRouting.Slot(DecisionRow.Read(value).AnchorKey)].IsReleased;
        }

        foreach (HeldKey held in PreparedPart.Read(value))
        {
            // A range holds the keys of all slots that the group had by the map with which it was divided.
            if (held.IsRange
                ? ReleasedSince(fates, held.MapVersion) is not null
                : fates[KeyRouting.Slot(held.Name)].IsReleased)
            {
                return true;
            }
        }

        return false;
    }

    /// <summary>
    /// A slot that was released by a move that this map of slots does not show; null: there is none. By such a map a
    /// range may have been looked up in too few partitions.
    /// </summary>
    private static int? ReleasedSince(Fate[] fates, ulong mapVersion)
    {
        int slot = Array.FindIndex(fates, fate => fate.IsReleased && fate.Version >= mapVersion);
        return slot < 0 ? null : slot;
    }

    private void Keep(Fate[] fates)
    {
        _fates = fates;
        _isAnyReleased = Array.Exists(fates, static fate => fate.IsReleased);
        if (_store.System.Find(s_name) is { IsNone: false } row)
        {
            _store.System.Free(row);
        }

        _store.System.Create(SystemRowKind.ReleasedSlots, s_name, Write(fates));
    }

    private static byte[] Write(Fate[] fates)
    {
        List<byte> value = [];
        Span<byte> range = stackalloc byte[RangeBytes];
        for (int first = 0, last; first < fates.Length; first = last + 1)
        {
            last = first;
            while (last + 1 < fates.Length && fates[last + 1] == fates[first])
            {
                last++;
            }

            if (fates[first] != default)
            {
                BinaryPrimitives.WriteUInt16LittleEndian(range, (ushort)first);
                BinaryPrimitives.WriteUInt16LittleEndian(range[2..], (ushort)last);
                range[4] = fates[first].IsReleased ? (byte)1 : (byte)0;
                BinaryPrimitives.WriteUInt64LittleEndian(range[5..], fates[first].Version);
                value.AddRange(range);
            }
        }

        return [.. value];
    }

    private static Fate[]? Read(ReadOnlySpan<byte> value)
    {
        Fate[] fates = new Fate[KeyRouting.Slots];
        int next = 0;
        for (; value.Length >= RangeBytes; value = value[RangeBytes..])
        {
            int first = BinaryPrimitives.ReadUInt16LittleEndian(value);
            int last = BinaryPrimitives.ReadUInt16LittleEndian(value[2..]);
            if (first < next || last < first || last >= fates.Length || value[4] > 1)
            {
                return null;
            }

            fates.AsSpan(first..(last + 1)).Fill(
                new Fate(BinaryPrimitives.ReadUInt64LittleEndian(value[5..]), value[4] == 1));
            next = last + 1;
        }

        return value.IsEmpty ? fates : null;
    }

    /// <summary>What has become of a slot here; the default when it was never given away.</summary>
    /// <param name="Version">The map that the last release began with, or that gave the slot back.</param>
    /// <param name="IsReleased">It belongs to another group.</param>
    private readonly record struct Fate(ulong Version, bool IsReleased);
}
