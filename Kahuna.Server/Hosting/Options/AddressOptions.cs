using System.Globalization;
using System.Net;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Options;

/// <summary>Parses the options with addresses and checks them against each other. Used once by one thread.</summary>
/// <param name="values">The given options.</param>
/// <param name="errors">Receives the errors.</param>
/// <param name="isComplete">Whether everything given could be read. If not, missing options are not reported, because
/// they may be among the rest.</param>
internal sealed class AddressOptions(
    IReadOnlyDictionary<OptionSetting, GivenValue> values, List<string> errors, bool isComplete)
{
    /// <summary>
    /// The addresses of <c>--listen</c>. Without it, the port of <paramref name="own"/>, the announced address: on that
    /// address if it is loopback, else on all interfaces.
    /// </summary>
    public IReadOnlyList<Uri> ReadListen(Uri? own)
    {
        if (!values.TryGetValue(OptionSetting.Listen, out GivenValue value))
        {
            return
            [
                own is null
                    ? NodeOptions.ListenDefault
                    : own.IsLoopback
                    ? own
                    : new UriBuilder(own) { Host = "[::]" }.Uri,
            ];
        }

        List<Uri> addresses = [];
        foreach (string text in value.Text.Split(',', StringSplitOptions.TrimEntries))
        {
            if (ReadAddress(value.Origin, text) is Uri address)
            {
                if (addresses.Contains(address))
                {
                    errors.Add($"{value.Origin}: {Show(address)} is named twice.");
                }

                addresses.Add(address);
            }
        }

        return addresses;
    }

    /// <summary>The nodes of <c>--peers</c> by ascending id; empty without it.</summary>
    public IReadOnlyList<PeerNode> ReadPeers(NodeId self)
    {
        if (!values.TryGetValue(OptionSetting.Peers, out GivenValue value))
        {
            return [];
        }

        int errorsBefore = errors.Count;
        List<PeerNode> peers = [];
        foreach (string text in value.Text.Split(',', StringSplitOptions.TrimEntries))
        {
            int equals = text.IndexOf('=', StringComparison.Ordinal);
            if (equals < 1
                || !ushort.TryParse(
                    text.AsSpan(0, equals), NumberStyles.None, CultureInfo.InvariantCulture, out ushort id)
                || id == 0)
            {
                errors.Add($"{value.Origin}: '{OneLine.Of(text)}' is not a node; write each as id=url, like 2=https://host:8082, with ids from 1 to {ushort.MaxValue}.");
            }
            else if (ReadAddress(value.Origin, text[(equals + 1)..]) is Uri address)
            {
                if (IsAnyAddress(address))
                {
                    errors.Add(
                        $"{value.Origin}: node {id} at {Show(address)}: other nodes cannot connect to an address "
                            + $"that stands for all interfaces.");
                }

                peers.Add(new PeerNode(new NodeId(id), address));
            }
        }

        if (errors.Count == errorsBefore)
        {
            CheckPeers(value.Origin, self, peers);
        }

        return [.. peers.OrderBy(peer => peer.Id)];
    }

    /// <summary>
    /// The announced address, from <c>--peers</c> or <c>--advertise</c>, if it can be parsed; null if the node
    /// announces its listen address.
    /// </summary>
    public Uri? ReadAnnounced(NodeId self, IReadOnlyList<PeerNode> peers) =>
        Own(self, peers)
            ?? (
                values.TryGetValue(OptionSetting.Advertise, out GivenValue value)
                    && Uri.TryCreate(value.Text, UriKind.Absolute, out Uri? address)
                    && address.Scheme == Uri.UriSchemeHttps
                    ? address
                    : null);

    /// <summary>
    /// Refuses a node that listens only on loopback addresses but announces another one, because it would be
    /// unreachable. A host name may resolve to anything, so the started node only warns of it
    /// (<see cref="StartReport"/>).
    /// </summary>
    public void CheckReachable(IReadOnlyList<Uri> listen, Uri advertise)
    {
        if (!values.TryGetValue(OptionSetting.Listen, out GivenValue value)
            || listen.Count == 0
            || !listen.All(address => address.IsLoopback))
        {
            return;
        }

        if (advertise.IsLoopback)
        {
            if (!listen.Any(address => address.Port == advertise.Port))
            {
                errors.Add(
                    $"{value.Origin}: this node listens on {string.Join(", ", listen.Select(Show))} only, but "
                        + $"announces {Show(advertise)}; leave {OptionSetting.Listen.Flag} out, or "
                        + $"listen on port {advertise.Port}.");
            }
        }
        else if (IPAddress.TryParse(advertise.IdnHost, out _) && !IsAnyAddress(advertise))
        {
            errors.Add($"{value.Origin}: {string.Join(", ", listen.Select(Show))} can be reached from this machine only, but this node announces {Show(advertise)}; leave {OptionSetting.Listen.Flag} out, or listen on https://0.0.0.0:{advertise.Port}.");
        }
    }

    private static Uri? Own(NodeId self, IReadOnlyList<PeerNode> peers) =>
        peers.Where(peer => peer.Id == self).Select(peer => peer.Address).FirstOrDefault();

    /// <summary>The address by which others reach this node.</summary>
    public Uri ReadAdvertise(NodeId self, IReadOnlyList<Uri> listen, IReadOnlyList<PeerNode> peers)
    {
        Uri? own = Own(self, peers);
        if (!values.TryGetValue(OptionSetting.Advertise, out GivenValue value))
        {
            Uri address = own ?? (listen.Count > 0 ? listen[0] : NodeOptions.ListenDefault);
            if (isComplete && own is null && IsAnyAddress(address))
            {
                errors.Add(
                    $"{OptionSetting.Advertise.Flag} is missing: {Show(address)} listens on all interfaces; name the "
                        + $"address by which others reach this node.");
            }

            return address;
        }

        if (ReadAddress(value.Origin, value.Text) is not Uri advertise)
        {
            return NodeOptions.ListenDefault;
        }

        if (IsAnyAddress(advertise))
        {
            errors.Add($"{value.Origin}: clients cannot connect to {Show(advertise)}; name a host or one address.");
        }
        else if (own is not null && own != advertise)
        {
            errors.Add(
                $"{value.Origin} says {Show(advertise)}, but {values[OptionSetting.Peers].Origin} says {Show(own)} "
                    + $"for node {self}; they must agree.");
        }

        return advertise;
    }

    private void CheckPeers(string origin, NodeId self, List<PeerNode> peers)
    {
        foreach (IGrouping<NodeId, PeerNode> same in peers.GroupBy(peer => peer.Id).Where(group => group.Count() > 1))
        {
            errors.Add($"{origin}: node id {same.Key} is named {same.Count()} times.");
        }

        foreach (IGrouping<Uri, PeerNode> same in peers.GroupBy(peer => peer.Address).Where(group => group.Count() > 1))
        {
            errors.Add(
                $"{origin}: nodes {string.Join(" and ", same.Select(peer => peer.Id))} have the "
                    + $"same address {Show(same.Key)}.");
        }

        if (peers.Count is not (1 or 3 or 5))
        {
            errors.Add($"{origin} names {peers.Count} nodes; a cluster has 1, 3 or 5.");
        }

        if (!values.ContainsKey(OptionSetting.NodeId))
        {
            if (!isComplete)
            {
                return;
            }

            errors.Add($"{origin} needs {OptionSetting.NodeId.Flag}, the id of this node.");
        }
        else if (!peers.Any(peer => peer.Id == self))
        {
            errors.Add($"{origin} does not name this node, whose id is {self}.");
        }
    }

    private Uri? ReadAddress(string origin, string text)
    {
        if (!Uri.TryCreate(text, UriKind.Absolute, out Uri? address) || string.IsNullOrEmpty(address.Host))
        {
            errors.Add($"{origin}: '{OneLine.Of(text)}' is not an address; write it as https://host:8082.");
        }
        else if (address.Scheme != Uri.UriSchemeHttps)
        {
            errors.Add($"{origin}: {OneLine.Of(text)} is not https; every connection is encrypted.");
        }
        else if (address.PathAndQuery != "/" || address.UserInfo.Length > 0 || address.Fragment.Length > 0)
        {
            errors.Add($"{origin}: {OneLine.Of(text)} has more than scheme, host and port; write it as https://host:8082.");
        }
        else if (address.Port is 0)
        {
            errors.Add($"{origin}: {OneLine.Of(text)} has port 0; name the port.");
        }
        else
        {
            return address;
        }

        return null;
    }

    private static bool IsAnyAddress(Uri address) =>
        IPAddress.TryParse(address.IdnHost, out IPAddress? ip)
            && (ip.Equals(IPAddress.Any) || ip.Equals(IPAddress.IPv6Any));

    private static string Show(Uri address) => address.GetLeftPart(UriPartial.Authority);
}
