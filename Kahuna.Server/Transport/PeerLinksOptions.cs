using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Transport;

/// <summary>A node of the cluster and its address. Immutable.</summary>
internal readonly record struct PeerAddress(NodeId Id, Uri Address);

/// <summary>Options of a node's links. Immutable; live as long as the links.</summary>
internal sealed record PeerLinksOptions
{
    public required NodeId Self { get; init; }

    public required string ClusterId { get; init; }

    /// <summary>Number of partitions. Nodes with different numbers refuse to link.</summary>
    public required int Partitions { get; init; }

    /// <summary>The cluster's secrets, one of which the nodes prove to each other; never sent.</summary>
    public required ClusterSecrets Secrets { get; init; }

    /// <summary>All nodes of the cluster; this one is skipped.</summary>
    public required IReadOnlyList<PeerAddress> Peers { get; init; }

    /// <summary>The voters. Nodes with different voters refuse to link.</summary>
    public VoterSet Voters => new(Peers.Select(static peer => peer.Id));

    /// <summary>The known data directories of the other nodes.</summary>
    public required IPeerDirectory Directory { get; init; }

    /// <summary>The versions of the protocol between nodes that this node speaks.</summary>
    public PeerVersions Versions { get; init; } = PeerProtocol.Versions;

    /// <summary>The feature levels that this build supports.</summary>
    public FeatureRange Features { get; init; } = FeatureLevels.Supported;

    /// <summary>The cluster's feature level, as far as this node knows. Called by the threads of the links.</summary>
    public Func<FeatureLevel> ClusterLevel { get; init; } = static () => FeatureLevel.First;

    /// <summary>
    /// A proven node has named a feature level of the cluster that this build does not support: this node must stop.
    /// Called by the threads of the links, possibly several times.
    /// </summary>
    public Action<FeatureLevel, NodeId> LevelUnsupported { get; init; } = static (_, _) => { };

    /// <summary>This node's certificate and the authorities that it trusts.</summary>
    public required TlsSource Tls { get; init; }

    /// <summary>What the nodes prove to each other besides the secret.</summary>
    public PeerTlsMode TlsMode { get; init; }

    /// <summary>Receives exceptions of the receiver of frames.</summary>
    public required IFatalErrors FatalErrors { get; init; }

    /// <summary>
    /// Most bytes queued for one peer; further frames are dropped. Seconds of full load: a peer that lags further is
    /// better served from the log.
    /// </summary>
    public int QueueBytesMax { get; init; } = 64 << 20;

    /// <summary>Most frames queued for one peer.</summary>
    public int QueueFramesMax { get; init; } = 64 * 1024;

    /// <summary>Timeout for connecting, TLS and the handshake together.</summary>
    public TimeSpan HandshakeTimeout { get; init; } = TimeSpan.FromSeconds(5);

    /// <summary>Most unproven accepted connections; a new one displaces the oldest.</summary>
    public int UnprovenMax { get; init; } = 32;

    /// <summary>Idle time after which a link sends a keep-alive frame.</summary>
    public TimeSpan KeepAliveInterval { get; init; } = TimeSpan.FromSeconds(1);

    /// <summary>Silence after which a link counts as dead.</summary>
    public TimeSpan SilenceMax { get; init; } = TimeSpan.FromSeconds(5);

    /// <summary>
    /// Wait after the first failed attempt to connect. Doubles up to <see cref="ReconnectMax"/>; half of it is random.
    /// </summary>
    public TimeSpan ReconnectMin { get; init; } = TimeSpan.FromMilliseconds(50);

    public TimeSpan ReconnectMax { get; init; } = TimeSpan.FromSeconds(1);

    /// <summary>
    /// How long a reader polls for bytes, yielding to runnable threads, before it blocks. Waking a sleeping processor
    /// of a virtual machine takes about 40 µs (docs/adr/0006-peer-links.md); most replies of a busy peer arrive sooner.
    /// Zero turns it off. Linux only.
    /// </summary>
    public TimeSpan ReadSpin { get; init; } = TimeSpan.FromMicroseconds(50);

    public TimeProvider Time { get; init; } = TimeProvider.System;

    /// <summary>Draws a number in [0, 1) for the random part of waits. Called from any thread.</summary>
    public Func<double> Jitter { get; init; } = Random.Shared.NextDouble;
}
