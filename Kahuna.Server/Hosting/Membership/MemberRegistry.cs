using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting.Membership;

/// <summary>
/// Knows the data directories of the other nodes, and whether this node's own may vote (docs/adr/0009-who-may-vote.md).
/// Every answer to another node is on stable storage before it is sent. Owned by the node, which holds the directory;
/// any thread.
/// </summary>
internal sealed class MemberRegistry : IPeerDirectory
{
    private readonly Lock _gate = new();
    private readonly string _directory;
    private readonly NodeId[] _others;

    /// <summary>
    /// Nodes that confirmed, since this process started, that they never knew another directory of this node.
    /// </summary>
    private readonly HashSet<NodeId> _confirmations = [];

    /// <summary>Nodes that returned with another directory and have not been linked yet.</summary>
    private readonly HashSet<NodeId> _replaced = [];

    private MembersFile _file;
    private volatile VotingState _voting;

    private MemberRegistry(NodeOptions options, DataDirectoryIdentity identity, MembersFile file)
    {
        _directory = options.DataDirectory;
        _others = [.. options.Peers.Select(peer => peer.Id).Where(id => id != options.NodeId)];
        _file = file;
        _voting = _others.Length == 0 ? VotingState.Yes : identity.Voting;
        OwnDirectoryId = identity.DirectoryId;
        HasPromised = identity.HasPromised || identity.Voting == VotingState.Rejoining;
    }

    /// <summary>
    /// All other nodes have confirmed this directory, which votes from now on; <c>node.json</c> says so already. Raised
    /// at most once, on a link's thread.
    /// </summary>
    public event Action? Confirmed;

    /// <summary>
    /// A node returned with a rebuilt directory: everything it had acknowledged is lost. Raised on that link's thread,
    /// after the last frame of the old directory and before the link is up.
    /// </summary>
    public event Action<NodeId>? MemberReplaced;

    /// <summary>
    /// An authenticated node refuses this directory: this node must stop and show the sentence. Raised on a link's
    /// thread, possibly several times.
    /// </summary>
    public event Action<string>? Refused;

    /// <inheritdoc/>
    public ulong OwnDirectoryId { get; }

    /// <inheritdoc/>
    public bool Rebuilt => _voting == VotingState.Rejoining;

    /// <summary>
    /// An earlier run of the node may have promised not to elect another leader; nobody knows of a directory that was
    /// rebuilt.
    /// </summary>
    public bool HasPromised { get; }

    /// <summary>Whether this directory votes at present.</summary>
    public VotingState Voting => _voting;

    /// <summary>Reads the record of a data directory, or starts one.</summary>
    /// <exception cref="DataDirectoryException">The record is damaged, or cannot be read or written; the message is one
    /// line.</exception>
    public static MemberRegistry Open(NodeOptions options, DataDirectoryIdentity identity)
    {
        // A directory that voted without a record, or was rebuilt without one, does not know which nodes it has
        // forgotten.
        MembersFile file = MembersFile.TryRead(options.DataDirectory)
            ?? new MembersFile(FromTheBeginning: identity.Voting == VotingState.Unproven, []);
        if (!options.IsStandalone)
        {
            try
            {
                // Written even if unchanged: a killed process may have left it in the system's cache only.
                file.Write(options.DataDirectory);
            }
            catch (Exception error) when (error is IOException or UnauthorizedAccessException)
            {
                throw DataDirectoryIdentity.Unusable(options.DataDirectory, error);
            }
        }

        return new MemberRegistry(options, identity, file);
    }

    /// <inheritdoc/>
    public PeerDirectoryAnswer Meet(NodeId peer, ulong directoryId, bool rebuilt)
    {
        lock (_gate)
        {
            MemberRecord? known = _file.Find(peer);
            if (known is null)
            {
                Record(new MemberRecord(peer, directoryId, []));
            }
            else if (known.DirectoryId != directoryId)
            {
                // A replaced directory stays replaced, even if it claims to be rebuilt: its rebuild came before the
                // present one.
                if (!rebuilt || known.Former.Contains(directoryId))
                {
                    return PeerDirectoryAnswer.AnotherDirectory;
                }

                Record(known.ReplacedBy(directoryId));
                _confirmations.Remove(peer);
                _replaced.Add(peer);
            }

            return _file.FromTheBeginning && _file.Find(peer)!.Former.Count == 0
                ? PeerDirectoryAnswer.OnlyDirectory
                : PeerDirectoryAnswer.Known;
        }
    }

    /// <inheritdoc/>
    public void Heard(NodeId peer, PeerDirectoryAnswer answer)
    {
        if (answer == PeerDirectoryAnswer.AnotherDirectory)
        {
            Refused?.Invoke(
                $"Node {peer} knows another data directory of this node: {_directory} has been emptied, replaced or "
                    + $"copied from elsewhere, and must not vote in place of the known one. "
                + "If the majority of the other nodes is intact, start this node with "
                + "--rebuild; they then restore it.");
        }
        else if (answer == PeerDirectoryAnswer.Known && _voting == VotingState.Unproven)
        {
            Refused?.Invoke(
                $"The data directory {_directory} is new, and node {peer} cannot confirm that this node never had "
                    + $"another one, because it was rebuilt or upgraded itself. "
                + "If the majority of the other nodes is intact, start this node with --rebuild. If the cluster never "
                + "held anything, start all of its nodes on empty directories, without --rebuild.");
        }
        else if (answer == PeerDirectoryAnswer.OnlyDirectory && TryConfirm(peer))
        {
            Confirmed?.Invoke();
        }
    }

    /// <inheritdoc/>
    public bool Linked(NodeId peer, ulong directoryId)
    {
        bool replaced;
        lock (_gate)
        {
            if (_file.Find(peer)?.DirectoryId != directoryId)
            {
                return false;
            }

            replaced = _replaced.Remove(peer);
        }

        if (replaced)
        {
            MemberReplaced?.Invoke(peer);
        }

        return true;
    }

    /// <summary>
    /// Records that the rebuilt directory is restored and knows the terms of all others: it votes from now on. Does
    /// nothing unless it is rejoining.
    /// </summary>
    /// <exception cref="IOException">It could not be recorded; the directory is still rejoining.</exception>
    public void Rejoined()
    {
        lock (_gate)
        {
            if (_voting == VotingState.Rejoining)
            {
                DataDirectoryIdentity.WithVoting(_directory, VotingState.Yes);
                _voting = VotingState.Yes;
            }
        }
    }

    /// <summary>Records a node's confirmation. True for the last missing one.</summary>
    private bool TryConfirm(NodeId peer)
    {
        lock (_gate)
        {
            if (_voting != VotingState.Unproven)
            {
                return false;
            }

            _confirmations.Add(peer);
            if (!_others.All(_confirmations.Contains))
            {
                return false;
            }

            DataDirectoryIdentity.WithVoting(_directory, VotingState.Yes);
            _voting = VotingState.Yes;
            return true;
        }
    }

    private void Record(MemberRecord member)
    {
        MembersFile file = _file.With(member);
        file.Write(_directory);
        _file = file;
    }
}
