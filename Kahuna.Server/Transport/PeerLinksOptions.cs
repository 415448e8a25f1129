using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Transport;

/// <summary>What the links of one node need to know. Immutable; lives as long as the links.</summary>
internal sealed record PeerLinksOptions
{
    public required NodeId Self { get; init; }

    public required string ClusterId { get; init; }

    /// <summary>Number of partitions; nodes that disagree about it must not talk.</summary>
    public required int Partitions { get; init; }

    /// <summary>What the nodes prove to each other; never sent.</summary>
    public required ReadOnlyMemory<byte> Secret { get; init; }

    /// <summary>All nodes of the cluster; this one is skipped.</summary>
    public required IReadOnlyList<PeerAddress> Peers { get; init; }

    /// <summary>The nodes that vote; nodes that disagree about them must not talk.</summary>
    public VoterSet Voters => new(Peers.Select(static peer => peer.Id));

    /// <summary>Which data directories of the others are known here.</summary>
    public required IPeerDirectory Directory { get; init; }

    /// <summary>The certificate that this node shows, and whom it trusts.</summary>
    public required TlsSource Tls { get; init; }

    /// <summary>Is told when taking in a frame throws.</summary>
    public required IFatalErrors FatalErrors { get; init; }

    /// <summary>Bytes that may wait for one peer; a frame beyond them is dropped. Seconds of full load: who is further behind is better served by the log.</summary>
    public int QueueBytesMax { get; init; } = 64 << 20;

    /// <summary>Frames that may wait for one peer.</summary>
    public int QueueFramesMax { get; init; } = 64 * 1024;

    /// <summary>Time for connecting, TLS and the proofs together.</summary>
    public TimeSpan HandshakeTimeout { get; init; } = TimeSpan.FromSeconds(5);

    /// <summary>Accepted connections that may be unproven at one time; the oldest gives way to a new one.</summary>
    public int UnprovenMax { get; init; } = 32;

    /// <summary>A link that had nothing to send for this long shows that it lives.</summary>
    public TimeSpan KeepAliveInterval { get; init; } = TimeSpan.FromSeconds(1);

    /// <summary>A link that heard nothing for this long is dead.</summary>
    public TimeSpan SilenceMax { get; init; } = TimeSpan.FromSeconds(5);

    /// <summary>Wait after the first failed attempt to connect; doubles up to <see cref="ReconnectMax"/>, half of it random.</summary>
    public TimeSpan ReconnectMin { get; init; } = TimeSpan.FromMilliseconds(50);

    public TimeSpan ReconnectMax { get; init; } = TimeSpan.FromSeconds(1);

    /// <summary>
    /// How long a reader looks for bytes, giving way to every thread that can run, before it sleeps. Waking a sleeping processor of a virtual machine takes
    /// about 40 µs (docs/adr/0006-peer-links.md); most answers of a busy peer come sooner. Zero: never. Linux only.
    /// </summary>
    public TimeSpan ReadSpin { get; init; } = TimeSpan.FromMicroseconds(50);

    public TimeProvider Time { get; init; } = TimeProvider.System;

    /// <summary>A number in [0, 1) for the random part of waits; called from any thread.</summary>
    public Func<double> Jitter { get; init; } = Random.Shared.NextDouble;
}
