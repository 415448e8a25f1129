using System.Globalization;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// Parses the options about who may do what and checks them against each other and the addresses. Used once by one
/// thread.
/// </summary>
/// <param name="values">The given options.</param>
/// <param name="errors">Receives the errors.</param>
/// <param name="isComplete">Whether everything given could be read. If not, missing options are not reported, because
/// they may be among the rest.</param>
internal sealed class AccessOptionsReader(
    IReadOnlyDictionary<OptionSetting, GivenValue> values, List<string> errors, bool isComplete)
{
    private const int AuditLogMegabytesMax = 10_000;

    private const int AuditLogFilesMax = 1_000;

    /// <summary>Longest name of a claim, issuer or audience.</summary>
    private const int TextMax = 1_024;

    /// <summary>Options that mean nothing where nobody has to sign in.</summary>
    private static readonly OptionSetting[] s_needAuth =
    [
        OptionSetting.AuthBootstrapFile, OptionSetting.AuthClientCa, OptionSetting.AuthJwtIssuer,
        OptionSetting.AuthJwtAudience, OptionSetting.AuthJwtKeys, OptionSetting.AuthJwtUserClaim,
        OptionSetting.MetricsTokenFile,
    ];

    /// <summary>The options; valid only without errors.</summary>
    /// <param name="listen">Where the node listens.</param>
    /// <param name="advertise">What it announces.</param>
    public AccessOptions Read(IReadOnlyList<Uri> listen, Uri advertise)
    {
        AuthMode? mode = ReadMode();
        AccessOptions options = new()
        {
            Mode = mode ?? AuthMode.None,
            IsModeGiven = mode is not null,
            BootstrapFile = ReadFile(OptionSetting.AuthBootstrapFile),
            ClientCaPath = ReadFile(OptionSetting.AuthClientCa),
            JwtIssuer = ReadText(OptionSetting.AuthJwtIssuer),
            JwtAudience = ReadText(OptionSetting.AuthJwtAudience),
            JwtKeys = ReadKeys(),
            JwtUserClaim = ReadText(OptionSetting.AuthJwtUserClaim) ?? AccessOptions.JwtUserClaimDefault,
            MetricsTokenFile = ReadFile(OptionSetting.MetricsTokenFile),
            ServesPage = PageOption.Read(values, errors),
            AuditLogPath = ReadAuditLog(),
            AuditLogBytes = 1_000_000L * ReadNumber(
                OptionSetting.AuditLogMb, AuditLogMegabytesMax, AccessOptions.AuditLogMegabytesDefault),
            AuditLogFiles = ReadNumber(
                OptionSetting.AuditLogFiles, AuditLogFilesMax, AccessOptions.AuditLogFilesDefault),
        };
        if (isComplete)
        {
            CheckTogether(options);
            CheckAddresses(listen, advertise);
        }

        return options;
    }

    /// <summary>A node that others can reach has to say whether everybody may use it.</summary>
    private void CheckAddresses(IReadOnlyList<Uri> listen, Uri advertise)
    {
        if (!values.ContainsKey(OptionSetting.Auth)
            && listen.Append(advertise).FirstOrDefault(static address => !address.IsLoopback) is { } open)
        {
            errors.Add(
                $"{OptionSetting.Auth.Flag} is missing: other machines can reach this node at "
                    + $"{open.GetLeftPart(UriPartial.Authority)}. Say '{OptionSetting.Auth.Flag} required', so that "
                    + $"callers have to sign in, or '{OptionSetting.Auth.Flag} none', so that everybody may do "
                    + $"everything.");
        }
    }

    private void CheckTogether(AccessOptions options)
    {
        foreach (OptionSetting setting in s_needAuth.Where(values.ContainsKey))
        {
            if (options.Mode != AuthMode.Required)
            {
                errors.Add($"{values[setting].Origin} needs '{OptionSetting.Auth.Flag} required'.");
            }
        }

        OptionSetting[] needed =
        [
            OptionSetting.AuthJwtIssuer, OptionSetting.AuthJwtAudience, OptionSetting.AuthJwtKeys,
        ];
        OptionSetting[] given = [.. needed.Append(OptionSetting.AuthJwtUserClaim).Where(values.ContainsKey)];
        if (given.Length > 0)
        {
            foreach (OptionSetting missing in needed.Where(setting => !values.ContainsKey(setting)))
            {
                errors.Add($"{values[given[0]].Origin} needs {missing.Flag} as well.");
            }
        }

        foreach (OptionSetting setting in (OptionSetting[])[OptionSetting.AuditLogMb, OptionSetting.AuditLogFiles])
        {
            if (values.TryGetValue(setting, out GivenValue value) && !values.ContainsKey(OptionSetting.AuditLog))
            {
                errors.Add($"{value.Origin} needs {OptionSetting.AuditLog.Flag} as well.");
            }
        }
    }

    private AuthMode? ReadMode()
    {
        if (!values.TryGetValue(OptionSetting.Auth, out GivenValue value))
        {
            return null;
        }

        switch (value.Text.ToUpperInvariant())
        {
            case "REQUIRED":
                return AuthMode.Required;
            case "NONE":
                return AuthMode.None;
            default:
                errors.Add($"{value.Origin}: '{OneLine.Of(value.Text)}' is not one of required, none.");
                return null;
        }
    }

    private string? ReadFile(OptionSetting setting)
    {
        if (!values.TryGetValue(setting, out GivenValue value))
        {
            return null;
        }

        string path = Path.GetFullPath(value.Text);
        if (!File.Exists(path))
        {
            errors.Add($"{value.Origin}: there is no file {path}.");
        }

        return path;
    }

    /// <summary>An https address, or a file.</summary>
    private string? ReadKeys()
    {
        if (!values.TryGetValue(OptionSetting.AuthJwtKeys, out GivenValue value)
            || !value.Text.Contains("://", StringComparison.Ordinal))
        {
            return ReadFile(OptionSetting.AuthJwtKeys);
        }

        if (!Uri.TryCreate(value.Text, UriKind.Absolute, out Uri? address)
            || address.Scheme != Uri.UriSchemeHttps
            || address.UserInfo.Length > 0)
        {
            errors.Add(
                $"{value.Origin}: '{OneLine.Of(value.Text)}' is neither a file nor an https address without a user.");
        }

        return value.Text;
    }

    private string? ReadText(OptionSetting setting)
    {
        if (!values.TryGetValue(setting, out GivenValue value))
        {
            return null;
        }

        if (value.Text.Length > TextMax || value.Text.Any(char.IsControl))
        {
            errors.Add(string.Create(
                CultureInfo.InvariantCulture,
                $"{value.Origin}: it must have at most {TextMax} characters, without control characters."));
        }

        return value.Text;
    }

    private string? ReadAuditLog()
    {
        if (!values.TryGetValue(OptionSetting.AuditLog, out GivenValue value))
        {
            return null;
        }

        string path = Path.GetFullPath(value.Text);
        if (Directory.Exists(path))
        {
            errors.Add($"{value.Origin}: {path} is a directory, not a file.");
        }
        else if (Path.GetDirectoryName(path) is { } directory && !Directory.Exists(directory))
        {
            errors.Add($"{value.Origin}: there is no directory {directory}.");
        }

        return path;
    }

    private int ReadNumber(OptionSetting setting, int max, int otherwise)
    {
        if (!values.TryGetValue(setting, out GivenValue value))
        {
            return otherwise;
        }

        if (int.TryParse(value.Text, NumberStyles.None, CultureInfo.InvariantCulture, out int number)
            && number >= 1
            && number <= max)
        {
            return number;
        }

        errors.Add($"{value.Origin}: '{OneLine.Of(value.Text)}' is not a whole number from 1 to {max}.");
        return otherwise;
    }
}
