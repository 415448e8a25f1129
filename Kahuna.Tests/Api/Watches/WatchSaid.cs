using System.Text;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Watches;
using WireFrames = Kahuna.Wire.Frames.Frame;

namespace Kahuna.Tests.Api.Watches;

/// <summary>What a watch stream has said, one item of a frame each. Immutable.</summary>
/// <param name="Frame">The kind of the frame.</param>
/// <param name="Point">Where it stands.</param>
internal sealed record WatchSaid(FrameKind Frame, ChangePoint Point)
{
    public WatchNoticeCode Notice { get; init; }

    /// <summary>The watch of a notice; those of a change.</summary>
    public uint[] Watches { get; init; } = [];

    public WatchedChangeKind Kind { get; init; }

    public WatchedChangeFlags Flags { get; init; }

    public uint Transaction { get; init; }

    public long Revision { get; init; }

    public string Key { get; init; } = "";

    public string Value { get; init; } = "";

    /// <summary>Text of a refusal.</summary>
    public string Text { get; init; } = "";

    public uint BehindMs { get; init; }

    /// <summary>The notice of a watch, or the change of a key, in short.</summary>
    public string Short => Frame switch
    {
        FrameKind.Notices => $"{Notice} {string.Join(',', Watches)}",
        FrameKind.Changes => $"{Kind} {Key}={Value} to {string.Join(',', Watches.Order())}",
        _ => $"{Frame}",
    };

    /// <summary>Reads a frame as it is sent, with its prefixes.</summary>
    public static List<WatchSaid> ReadSent(ReadOnlySpan<byte> sent)
    {
        Assert.True(WireFrames.TryGetPayload(
            sent[WireFrames.GrpcPrefixBytes..], out ReadOnlySpan<byte> payload));
        return Read(payload);
    }

    /// <summary>Reads the payload of a frame.</summary>
    public static List<WatchSaid> Read(ReadOnlySpan<byte> payload)
    {
        Assert.True(WireFrames.TryReadHeader(payload, out FrameKind kind, out _, out int count));
        payload = payload[WireFrames.HeaderBytes..];
        if (kind is FrameKind.Hello or FrameKind.GoAway)
        {
            return [new WatchSaid(kind, default)];
        }

        List<WatchSaid> said = [];
        (uint group, ulong epoch) = (0, 0);
        Assert.True(kind != FrameKind.Changes || WatchedChange.TryReadFrameHeader(ref payload, out group, out epoch));
        for (int i = 0; i < count; i++)
        {
            said.Add(kind switch
            {
                FrameKind.Changes => ReadChange(ref payload, group, epoch),
                FrameKind.Notices => ReadNotice(ref payload),
                _ => ReadProgress(ref payload),
            });
        }

        Assert.True(payload.IsEmpty);
        return said;
    }

    private static WatchSaid ReadChange(ref ReadOnlySpan<byte> payload, uint group, ulong epoch)
    {
        Assert.True(WatchedChange.TryRead(ref payload, out WatchedChange change));
        uint[] watches = new uint[change.WatchCount];
        for (int i = 0; i < watches.Length; i++)
        {
            watches[i] = change.Watch(i);
        }

        return new WatchSaid(FrameKind.Changes, new ChangePoint(group, epoch, change.Index, change.N))
        {
            Watches = watches,
            Kind = change.Kind,
            Flags = change.Flags,
            Transaction = change.Transaction,
            Revision = change.Revision,
            Key = Encoding.UTF8.GetString(change.Key),
            Value = Encoding.UTF8.GetString(change.Value),
        };
    }

    private static WatchSaid ReadNotice(ref ReadOnlySpan<byte> payload)
    {
        Assert.True(WatchNotice.TryRead(ref payload, out WatchNotice notice));
        return new WatchSaid(FrameKind.Notices, notice.Point)
        {
            Notice = notice.Code,
            Watches = [notice.Watch],
            Text = Encoding.UTF8.GetString(notice.Text),
        };
    }

    private static WatchSaid ReadProgress(ref ReadOnlySpan<byte> payload)
    {
        Assert.True(WatchProgress.TryRead(ref payload, out WatchProgress progress));
        return new WatchSaid(FrameKind.Progress, progress.Point) { BehindMs = progress.BehindMs };
    }
}
