using System.CommandLine;
using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;
using Kahuna.Client;
using Kahuna.Client.Connection.Access;

namespace Kahuna.Benchmark.CommandLine;

/// <summary>
/// Reads the options that say who the tool is to the cluster. Used once. Secrets come from files alone: other users of
/// the machine see a command line.
/// </summary>
internal sealed class CredentialReader(OptionTable table, ParseResult parsed)
{
    /// <summary>What the options say; null when none is given.</summary>
    /// <exception cref="OptionException">They do not go together, or a file cannot be used.</exception>
    public KahunaCredentials? Read(TargetKind target, ConnectionSource source)
    {
        Option<string>[] given =
        [
            .. new[]
            {
                table.User, table.PasswordFile, table.TokenFile, table.ClientCertificate, table.ClientCertificateKey,
            }.Where(option => parsed.GetValue(option) is not null),
        ];
        if (given.Length == 0)
        {
            return null;
        }

        if (target != TargetKind.Kahuna || source.EmbeddedNodes > 0)
        {
            throw new OptionException($"{given[0].Name} needs the endpoints of a Kahuna cluster.");
        }

        Refuse(table.User, without: table.PasswordFile);
        Refuse(table.PasswordFile, without: table.User);
        Refuse(table.ClientCertificateKey, without: table.ClientCertificate);
        Option<string>[] ways =
        [
            .. given.Where(option =>
                option == table.User || option == table.TokenFile || option == table.ClientCertificate),
        ];
        return ways.Length == 1
            ? Checked(ways[0])
            : throw new OptionException($"{ways[0].Name} and {ways[1].Name} contradict each other.");
    }

    /// <summary>What is not as it should be, but no reason not to run: sentences without a dot.</summary>
    public IEnumerable<string> Warnings()
    {
        Option<string>[] secrets = [table.PasswordFile, table.TokenFile, table.ClientCertificateKey];
        foreach (Option<string> option in secrets)
        {
            if (parsed.GetValue(option) is { } path && SecretFile.IsReadableByOthers(path))
            {
                yield return $"{option.Name}: other users of this machine can read '{path}'";
            }
        }
    }

    private KahunaCredentials Checked(Option<string> way)
    {
        Option<string> file = way == table.User ? table.PasswordFile : way;
        string path = parsed.GetValue(file)!;
        KahunaCredentials credentials;
        try
        {
            credentials = way == table.User ? KahunaCredentials.PasswordFile(parsed.GetValue(table.User)!, path)
                : way == table.TokenFile ? KahunaCredentials.TokenFile(path)
                : KahunaCredentials.ClientCertificate(path, parsed.GetValue(table.ClientCertificateKey));
        }
        catch (ArgumentException refused)
        {
            throw new OptionException($"{way.Name}: {refused.Message}");
        }

        return credentials.Check() is { } unusable
            ? throw new OptionException($"{file.Name}: {unusable}.")
            : credentials;
    }

    private void Refuse(Option<string> option, Option<string> without)
    {
        if (parsed.GetValue(option) is not null && parsed.GetValue(without) is null)
        {
            throw new OptionException($"{option.Name} needs {without.Name}.");
        }
    }
}
