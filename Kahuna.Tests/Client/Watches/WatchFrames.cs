using System.Text;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Client.Watches;

/// <summary>The bodies of the frames that a node sends on a stream of watches. Stateless.</summary>
internal static class WatchFrames
{
    /// <summary>The group of the first partition's persistent keys.</summary>
    public const uint Group = 1;

    /// <summary>The group of the first partition's ephemeral keys.</summary>
    public const uint Ephemeral = 1 | (1u << 30);

    public static ChangePoint At(ulong index, uint n = ChangePoint.AllOfEntry, uint group = Group, ulong epoch = 0) =>
        new(group, epoch, index, n);

    /// <summary>A frame of changes of one group.</summary>
    public static byte[] Changes(uint group, ulong epoch, params ReadOnlySpan<SentChange> changes)
    {
        ByteBuffer body = ByteBuffer.Rent();
        WatchedChange.WriteFrameHeader(body, group, epoch);
        foreach (SentChange change in changes)
        {
            byte[] ids = new byte[change.Watches.Length * sizeof(uint)];
            Buffer.BlockCopy(change.Watches, 0, ids, 0, ids.Length);
            new WatchedChange
            {
                Kind = change.Kind,
                Flags = change.Flags | (change.Value is null ? WatchedChangeFlags.NullValue : WatchedChangeFlags.None),
                N = change.N,
                Transaction = change.Transaction,
                Index = change.Index,
                Revision = change.Revision,
                Watches = ids,
                Key = Encoding.UTF8.GetBytes(change.Key),
                Value = Encoding.UTF8.GetBytes(change.Value ?? ""),
            }.Write(body);
        }

        return Taken(body);
    }

    public static byte[] Changes(params ReadOnlySpan<SentChange> changes) => Changes(Group, 0, changes);

    public static byte[] Progress(params ReadOnlySpan<WatchProgress> progress)
    {
        ByteBuffer body = ByteBuffer.Rent();
        foreach (WatchProgress one in progress)
        {
            one.Write(body);
        }

        return Taken(body);
    }

    public static byte[] Notice(
        WatchNoticeCode code, uint watch, ChangePoint point = default, uint status = 0, string text = "")
    {
        ByteBuffer body = ByteBuffer.Rent();
        new WatchNotice
        {
            Code = code,
            Watch = watch,
            Point = point,
            Status = status,
            Text = Encoding.UTF8.GetBytes(text),
        }.Write(body);
        return Taken(body);
    }

    private static byte[] Taken(ByteBuffer body)
    {
        byte[] bytes = body.Written.ToArray();
        body.Return();
        return bytes;
    }
}

/// <summary>A change as a test's node sends it.</summary>
/// <param name="Index">The entry.</param>
/// <param name="Key">The key.</param>
/// <param name="Watches">The watches that it concerns.</param>
internal sealed record SentChange(ulong Index, string Key, params uint[] Watches)
{
    public uint N { get; init; }

    public uint Transaction { get; init; }

    public long Revision { get; init; } = 1;

    public string? Value { get; init; } = "v";

    public WatchedChangeKind Kind { get; init; } = WatchedChangeKind.Set;

    public WatchedChangeFlags Flags { get; init; }
}
