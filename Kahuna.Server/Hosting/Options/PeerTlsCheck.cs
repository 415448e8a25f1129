using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// Checks <c>--peer-tls</c> against the other options. Certificates prove nodes only under known authorities: those of
/// the system certify every host of the world. Stateless.
/// </summary>
internal static class PeerTlsCheck
{
    /// <summary>Adds what is wrong to the errors, one line each.</summary>
    public static void Check(
        IReadOnlyDictionary<OptionSetting, GivenValue> values, IReadOnlyList<PeerNode> peers, List<string> errors)
    {
        if (!values.TryGetValue(OptionSetting.PeerTls, out GivenValue given))
        {
            return;
        }

        if (peers.Count == 1)
        {
            errors.Add($"{given.Origin} needs {OptionSetting.Peers.Flag} with other nodes.");
        }
        else if (!given.Text.Equals(nameof(PeerTlsMode.Secret), StringComparison.OrdinalIgnoreCase)
            && values.ContainsKey(OptionSetting.Certificate)
            && !values.ContainsKey(OptionSetting.TrustedCa))
        {
            errors.Add(
                $"{given.Origin} needs {OptionSetting.TrustedCa.Flag}: the authorities of the nodes' certificates.");
        }
    }
}
