using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting.Membership;

/// <summary>
/// Which data directories of the other nodes are known here, and whether the own one votes (docs/adr/0009-who-may-vote.md). What it answers to another
/// node is on stable storage before. Owned by the node, which holds the directory; any thread.
/// </summary>
internal sealed class KnownMembers : IPeerDirectory
{
    private readonly Lock _gate = new();
    private readonly string _directory;
    private readonly NodeId[] _others;

    /// <summary>Nodes that said in this life of the process that they never knew another directory of this one.</summary>
    private readonly HashSet<NodeId> _vouched = [];

    /// <summary>Nodes that came back with another directory, of which no link has begun yet.</summary>
    private readonly HashSet<NodeId> _replaced = [];

    private MembersFile _file;
    private volatile VotingState _voting;

    private KnownMembers(NodeOptions options, DataDirectoryIdentity identity, MembersFile file)
    {
        _directory = options.DataDirectory;
        _others = [.. options.Peers.Select(peer => peer.Id).Where(id => id != options.NodeId)];
        _file = file;
        _voting = _others.Length == 0 ? VotingState.Yes : identity.Voting;
        OwnDirectoryId = identity.DirectoryId;
    }

    /// <summary>The last of the other nodes has vouched for this directory, which votes from now on; <c>node.json</c> says so already. At most once, in a link's thread.</summary>
    public event Action? Proven;

    /// <summary>
    /// A node came back with a rebuilt directory: nothing that it had acknowledged before is there any more. Raised after the last frame of its old
    /// directory was delivered and before its link is up, in that link's thread.
    /// </summary>
    public event Action<NodeId>? MemberReplaced;

    /// <summary>A node that proved itself does not accept this directory: this node must stop, and the operator needs the sentence. In a link's thread; maybe several times.</summary>
    public event Action<string>? Refused;

    /// <inheritdoc/>
    public ulong OwnDirectoryId { get; }

    /// <inheritdoc/>
    public bool Rebuilt => _voting == VotingState.Rejoining;

    /// <summary>Whether this directory votes at present.</summary>
    public VotingState Voting => _voting;

    /// <summary>Reads what is known, or begins to know.</summary>
    /// <exception cref="DataDirectoryException">The record is damaged, or cannot be read or written; the message is one line.</exception>
    public static KnownMembers Open(NodeOptions options, DataDirectoryIdentity identity)
    {
        // A directory that voted before without such a record, or that is rebuilt without its old one, does not know whom it has forgotten.
        MembersFile file = MembersFile.TryRead(options.DataDirectory) ?? new MembersFile(FromTheBeginning: identity.Voting == VotingState.Unproven, []);
        if (!options.IsStandalone)
        {
            try
            {
                // Also what was found: a process that was killed may have left it in the system's memory only.
                file.Write(options.DataDirectory);
            }
            catch (Exception error) when (error is IOException or UnauthorizedAccessException)
            {
                throw DataDirectoryIdentity.Unusable(options.DataDirectory, error);
            }
        }

        return new KnownMembers(options, identity, file);
    }

    /// <inheritdoc/>
    public PeerDirectoryAnswer Meet(NodeId peer, ulong directoryId, bool rebuilt)
    {
        lock (_gate)
        {
            KnownMember? known = _file.Find(peer);
            if (known is null)
            {
                Record(new KnownMember(peer, directoryId, []));
            }
            else if (known.DirectoryId != directoryId)
            {
                // A directory that was given up once stays so, also when it says that it is a rebuilt one: it was, before the present one.
                if (!rebuilt || known.Former.Contains(directoryId))
                {
                    return PeerDirectoryAnswer.AnotherDirectory;
                }

                Record(known.ReplacedBy(directoryId));
                _vouched.Remove(peer);
                _replaced.Add(peer);
            }

            return _file.FromTheBeginning && _file.Find(peer)!.Former.Count == 0 ? PeerDirectoryAnswer.OnlyDirectory : PeerDirectoryAnswer.Known;
        }
    }

    /// <inheritdoc/>
    public void Heard(NodeId peer, PeerDirectoryAnswer answer)
    {
        if (answer == PeerDirectoryAnswer.AnotherDirectory)
        {
            Refused?.Invoke(
                $"Node {peer} knows another data directory of this node: {_directory} was emptied, replaced or copied from elsewhere since, and must not vote in the place of the known one. "
                + "If the majority of the other nodes is intact, start this node with --rebuild; it then comes back from them.");
        }
        else if (answer == PeerDirectoryAnswer.Known && _voting == VotingState.Unproven)
        {
            Refused?.Invoke(
                $"The data directory {_directory} is new, and node {peer} cannot say that this node never had another one, since it was rebuilt or upgraded itself. "
                + "If the majority of the other nodes is intact, start this node with --rebuild. If the cluster never held anything, start all of its nodes on empty directories, without --rebuild.");
        }
        else if (answer == PeerDirectoryAnswer.OnlyDirectory && Vouched(peer))
        {
            Proven?.Invoke();
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

    /// <summary>The rebuilt directory was restored and knows all others' terms: it votes from now on, and is like any other. Does nothing for one that is not rejoining.</summary>
    /// <exception cref="IOException">It could not be written; the directory is rejoining still.</exception>
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

    /// <summary>Notes a node's word. True when it was the last one that was missing.</summary>
    private bool Vouched(NodeId peer)
    {
        lock (_gate)
        {
            if (_voting != VotingState.Unproven)
            {
                return false;
            }

            _vouched.Add(peer);
            if (!_others.All(_vouched.Contains))
            {
                return false;
            }

            DataDirectoryIdentity.WithVoting(_directory, VotingState.Yes);
            _voting = VotingState.Yes;
            return true;
        }
    }

    private void Record(KnownMember member)
    {
        MembersFile file = _file.With(member);
        file.Write(_directory);
        _file = file;
    }
}
