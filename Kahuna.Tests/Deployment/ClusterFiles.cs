using System.Collections;
using System.Text.RegularExpressions;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Transport;
using Kahuna.Tests.Hosting;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Deployment;

/// <summary>
/// Certificates and a secret as a command of docs/deployment.md makes them, in a directory of one test.
/// </summary>
internal sealed partial class ClusterFiles : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    /// <summary>Runs the page's command that writes to <paramref name="folder"/>.</summary>
    public ClusterFiles(string folder)
    {
        string page = File.ReadAllText(Repository.FullPath("docs/deployment.md")).Replace(
            "\\\n", " ", StringComparison.Ordinal);
        string[] names = Command().Matches(page)
            .Select(static match => match.Groups[1].Value.Split(' ', StringSplitOptions.RemoveEmptyEntries))
            .Single(words => words[0] == folder)[1..];
        Assert.Equal((0, ""), Deployed.Run(Repository.FullPath("deploy/certificates.sh"), [_directory.Path, .. names]));
    }

    /// <summary>The path of one of the files.</summary>
    public string this[string file] => Path.Combine(_directory.Path, file);

    /// <summary>The directory of all.</summary>
    public string Directory => _directory.Path;

    /// <summary>
    /// The options of a node that is started like this, and would start: its files are there and fit together.
    /// </summary>
    /// <param name="arguments">The command line.</param>
    /// <param name="environment">The environment.</param>
    /// <param name="places">Where the files lie here that the node finds under other names.</param>
    public static NodeOptions Accepted(
        string[] arguments,
        IReadOnlyDictionary<string, string> environment,
        IReadOnlyDictionary<string, string> places)
    {
        Dictionary<string, string> here = environment.ToDictionary(
            static variable => variable.Key, variable => places.GetValueOrDefault(variable.Value, variable.Value));
        NodeOptionsResult result = NodeOptionsParser.Parse(arguments, (IDictionary)here);
        Findings.AssertNone(result.Errors);
        NodeOptions options = result.Options!;

        // The certificate is for the host that the node announces, for both sides, and under the authority.
        Assert.NotNull(NodeCertificates.Load(options, TimeProvider.System).TrustedRoots);
        Assert.Equal(AuthMode.Required, options.Access.Mode);
        Assert.Equal(PeerTlsMode.Mutual, options.PeerTls);
        Assert.True(options.PartitionsGiven);
        Assert.Equal(3, options.Peers.Count);
        return options;
    }

    /// <inheritdoc/>
    public void Dispose() => _directory.Dispose();

    [GeneratedRegex(@"^(?:sudo )?deploy/certificates\.sh (.+)$", RegexOptions.Multiline)]
    private static partial Regex Command();
}
